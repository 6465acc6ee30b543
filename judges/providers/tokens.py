"""Access tokens: fetched when a call needs one, kept in memory until expiry, shown to nobody."""

import asyncio
import base64
import binascii
import json
import subprocess
import time
from collections.abc import Callable, Hashable
from typing import Any

from judges.errors import Refused
from judges.providers.replies import get_path, parse_body

COMMAND_S = 60.0  # Seconds that a command may take.
EARLY_S = 300.0  # A token is fetched anew so long before it expires: a call must not outlive it.
SHORT_S = 300.0  # How long a token is kept that does not say when it expires.


# A token, and when it expires (seconds since 1970).
AccessToken = tuple[str, float]


class Tokens:
    """The tokens of an account by where they come from. Whoever needs one that is being fetched waits for it."""

    def __init__(self) -> None:
        self.known: dict[Hashable, AccessToken] = {}
        self.turn = asyncio.Lock()

    async def of(self, source: Hashable, fetch: Callable[[], AccessToken]) -> str:
        """Return the token of a source; `fetch` runs in a thread. Raises what it raises."""
        async with self.turn:
            known = self.known.get(source)
            if known is None or known[1] - EARLY_S < time.time():
                known = self.known[source] = await asyncio.to_thread(fetch)
        return known[0]

    def forget(self) -> None:
        """Forget all tokens: a server does not accept one, and the next call fetches anew."""
        self.known.clear()


def from_command(command: tuple[str, ...]) -> AccessToken:
    """Run a command that prints a token, or JSON with one. What it printed is never part of an error: it may be secret.

    JSON as `az account get-access-token` and OAuth's token endpoints write it: the token as
    accessToken, access_token or token; its end as expires_on (seconds since 1970) or expires_in.
    Raises Refused.
    """
    name = command[0]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=False, text=True
        )
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired) as error:
        why = "took too long" if isinstance(error, subprocess.TimeoutExpired) else "cannot be run"
        raise Refused(f"token_command: {name} {why}: run it in a terminal of this machine") from None
    printed = done.stdout.strip()
    body = parse_body(printed)
    named = (get_path(body, name) for name in ("accessToken", "access_token", "token"))
    value = next(filter(None, named), None) if body else printed
    if done.returncode or not isinstance(value, str) or not value or not value.isascii() or len(value.split()) != 1:
        what = f"ended with {done.returncode}" if done.returncode else "printed no token"
        raise Refused(f"token_command: {name} {what}: run it in a terminal of this machine to see why")
    left = _parse_seconds(get_path(body, "expires_in"))
    said = _parse_seconds(get_path(body, "expires_on")) or (left and time.time() + left)
    return make_token(value, said or _parse_seconds(get_path(_jwt_payload(value), "exp")))


def make_token(value: str, expires: float = 0.0) -> AccessToken:
    """Return a token with its expiry; 0 where unknown: a short life is assumed."""
    return value, expires or time.time() + EARLY_S + SHORT_S


def _parse_seconds(value: object) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0


def _jwt_payload(value: str) -> dict[str, Any]:
    """Return what a JSON Web Token says of itself; {} for another kind. Its signature is the server's matter."""
    part = value.split(".")[1] if value.count(".") == 2 else ""
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
