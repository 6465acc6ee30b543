"""Access tokens: fetched when a call needs one, cached in memory until they expire, never shown."""

import asyncio
import base64
import binascii
import json
import subprocess
import time
from collections.abc import Callable, Hashable
from contextlib import suppress

from judges.errors import Refused
from judges.providers.replies import get_path, parse_body

COMMAND_S = 60.0  # Seconds that a command may take.
EARLY_S = 300.0  # A token is replaced so long before it expires, since a call must not outlive it.
SHORT_S = 300.0  # How long a token without a known expiry is used.


# A token, and when it expires (seconds since 1970).
AccessToken = tuple[str, float]


class Tokens:
    """The tokens of an account, by their source. Calls wait for a token that is being fetched."""

    def __init__(self) -> None:
        self.cached: dict[Hashable, AccessToken] = {}
        self.lock = asyncio.Lock()

    async def of(self, source: Hashable, fetch: Callable[[], AccessToken]) -> str:
        """Return the token of a source; `fetch` runs in a thread, and its exceptions are raised."""
        async with self.lock:
            token = self.cached.get(source)
            if token is None or token[1] - EARLY_S < time.time():
                token = self.cached[source] = await asyncio.to_thread(fetch)
        return token[0]

    def forget(self) -> None:
        """Forget all tokens after a server has rejected one: the next call fetches a new one."""
        self.cached.clear()


def from_command(command: tuple[str, ...]) -> AccessToken:
    """Run a command that prints a token or JSON with one. Its output is never part of an error, since it may be secret.

    The JSON is that of `az account get-access-token` or of OAuth's token endpoints: the token is accessToken,
    access_token or token, its expiry is expires_on (seconds since 1970) or expires_in. Raises Refused.
    """
    name = command[0]
    try:
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=False, text=True
        )
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired) as error:
        problem = "took too long" if isinstance(error, subprocess.TimeoutExpired) else "cannot be run"
        raise Refused(f"token_command: {name} {problem}: run it in a terminal of this machine") from None
    output = process.stdout.strip()
    body = parse_body(output)
    candidates = (get_path(body, name) for name in ("accessToken", "access_token", "token"))
    value = next(filter(None, candidates), None) if body else output
    if process.returncode or not isinstance(value, str) or not value or not value.isascii() or len(value.split()) != 1:
        outcome = f"ended with {process.returncode}" if process.returncode else "printed no token"
        raise Refused(f"token_command: {name} {outcome}: run it in a terminal of this machine to see why")
    expires_in = _parse_seconds(get_path(body, "expires_in"))
    expires_at = _parse_seconds(get_path(body, "expires_on")) or (expires_in and time.time() + expires_in)
    if not expires_at and value.count(".") == 2:
        # A JSON Web Token says itself when it expires. Its signature is checked by the server.
        payload = value.split(".")[1]
        with suppress(binascii.Error, ValueError):
            token_fields = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            expires_at = _parse_seconds(get_path(token_fields, "exp"))
    return make_token(value, expires_at)


def make_token(value: str, expires: float = 0.0) -> AccessToken:
    """Return a token with its expiry; for 0, which means unknown, a short life is assumed."""
    return value, expires or time.time() + EARLY_S + SHORT_S


def _parse_seconds(value: object) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0
