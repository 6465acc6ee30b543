"""Readers of environment variables, from which every setting of an instance comes.

An invalid value ends the program with one line and exit code 2, before anything is done.
"""

import math
import os
import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from corpus.collections import secrets
from corpus.errors import BadInput
from embedded.refuse import refuse

ROOT = Path(__file__).resolve().parent.parent
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def text(name: str, default: str = "") -> str:
    """Return the variable's value, or the default if it is unset or empty."""
    # Docker Compose passes unset variables on as empty ones, so empty means unset.
    return os.environ.get(name) or default


def secret(name: str) -> str:
    """Return a secret from the environment or a file; an unreadable file ends the program."""
    try:
        return secrets.read_secret(name)
    except BadInput as error:
        refuse(str(error))


def long_secrets(name: str) -> list[str]:
    """Return secrets separated by commas, the newest first; one of fewer than 32 characters ends the program."""
    words = [word.strip() for word in secret(name).split(",") if word.strip()]
    if any(len(word) < 32 for word in words):
        refuse(f"{name}: a secret has fewer than 32 characters: make one with `openssl rand -hex 32`.")
    return words


def flag(name: str, default: bool = False) -> bool:
    """Return whether the variable is 1, true, yes or on, in any case; an unknown word ends the program."""
    value = text(name).lower()
    if value and value not in YES + NO:
        refuse(f"{name}={value!r} is neither on nor off: set it to 1 or 0.")
    return value in YES if value else default


def number(name: str, default: float, *, least: float = 0) -> float:
    """Return a variable as a number; anything else, or less than `least`, ends the program."""
    value = text(name)
    try:
        parsed = float(value) if value else default
    except ValueError:
        refuse(f"{name}={value!r} is not a number.")
    if not math.isfinite(parsed) or parsed < least:
        refuse(f"{name}={value!r} is not a number of {least:g} or more.")
    return parsed


def count(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """Return a variable as a whole number; anything else, less than `least` or more than `most` ends the program."""
    value = text(name)
    try:
        parsed = int(value) if value else default
    except ValueError:
        refuse(f"{name}={value!r} is not a whole number.")
    if parsed < least:
        refuse(f"{name}={value!r} must be {least} or more.")
    if most is not None and parsed > most:
        refuse(f"{name}={value!r} must be {most} or less.")
    return parsed


def one_of(name: str, choices: Sequence[str], default: str = "") -> str:
    """Return the variable's value, which must be one of the choices."""
    value = text(name, default)
    if value and value not in choices:
        refuse(f"{name}={value!r} is none of {', '.join(choices)}.")
    return value


def comma_separated(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return networks like 10.0.0.0/8, or single addresses; anything else ends the program."""
    try:
        return [ip_network(word) for word in comma_separated(name)]
    except ValueError as error:
        refuse(f"{name}: {error}; name networks as 10.0.0.0/8, separated by commas.")


def servers(name: str) -> frozenset[str]:
    """Return servers like search.example.org:9200, in lower case; anything else ends the program."""
    words = [word.lower() for word in comma_separated(name)]
    for word in words:
        try:
            parts = urlsplit(f"//{word}")
            is_server = parts.netloc == word and "@" not in word and bool(parts.hostname) and bool(parts.port)
        except ValueError:
            is_server = False
        if not is_server:
            refuse(f"{name}: {word!r} must be a host with its port, as 127.0.0.1:9200; separate several by commas.")
    return frozenset(words)


def origins(name: str) -> list[str]:
    """Return origins like https://quorum.example.org; anything else ends the program."""
    # Browsers send an origin without a trailing slash, and Django compares the strings.
    words = [word.rstrip("/") for word in comma_separated(name)]
    for word in words:
        if not _is_web_address(word) or urlsplit(word).path:
            refuse(
                f"{name}: {word!r} must begin with https:// (or http://) and name a host alone, as "
                "https://quorum.example.org."
            )
    return words


def sub_path(name: str) -> str:
    """Return the path below which the site is served, like /quorum; "" if it has its own host."""
    value = text(name).rstrip("/")
    if value and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", value):
        refuse(f"{name}={value!r} must be a path that begins with a slash, as /quorum.")
    return value


def web_address(name: str) -> str:
    """Return the address of a server without a trailing slash, or "" if none is set."""
    value = text(name).rstrip("/")
    if value and not _is_web_address(value):
        refuse(f"{name}={value!r} must be an address that begins with https:// (or http://).")
    return value


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:  # For example, a missing bracket.
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def time_zone(name: str, default: str) -> str:
    """Return the name of a time zone that this machine knows; anything else ends the program."""
    value = text(name, default)
    try:
        ZoneInfo(value)
    # ZoneInfo opens a file of that name, so folders and paths that lead elsewhere raise other errors.
    except (KeyError, ValueError, OSError):
        refuse(f"{name}={value!r} is no time zone: name one as Europe/Berlin or UTC.")
    return value


def var() -> Path:
    """Return the folder for everything that this instance writes (QUORUM_VAR)."""
    return Path(text("QUORUM_VAR", str(ROOT / "var"))).resolve()
