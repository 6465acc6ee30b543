"""Readers of environment variables: every setting of an instance comes from here.

A value that cannot be meant ends the program with one line and exit code 2, before anything is done.
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
    """Return the variable's value, or the default where it is unset or empty."""
    # Compose passes on unset variables as empty ones, so empty means unset.
    return os.environ.get(name) or default


def secret(name: str) -> str:
    """Return a secret from environment or file; an unreadable one stops the program."""
    try:
        return secrets.read_secret(name)
    except BadInput as error:
        refuse(str(error))


def flag(name: str, default: bool = False) -> bool:
    """Return whether the variable is 1, true, yes or on, in any case; a word that says neither stops the program."""
    value = text(name).lower()
    if value and value not in YES + NO:
        refuse(f"{name}={value!r} is neither on nor off: set it to 1 or 0.")
    return value in YES if value else default


def number(name: str, default: float, *, least: float = 0) -> float:
    """Return a variable as a number; anything else, or less than `least`, stops the program."""
    value = text(name)
    try:
        found = float(value) if value else default
    except ValueError:
        refuse(f"{name}={value!r} is not a number.")
    if not math.isfinite(found) or found < least:
        refuse(f"{name}={value!r} is not a number of {least:g} or more.")
    return found


def count(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """Return a variable as a whole number; anything else, less than `least` or more than `most` stops the program."""
    value = text(name)
    try:
        found = int(value) if value else default
    except ValueError:
        refuse(f"{name}={value!r} is not a whole number.")
    if found < least:
        refuse(f"{name}={value!r} must be {least} or more.")
    if most is not None and found > most:
        refuse(f"{name}={value!r} must be {most} or less.")
    return found


def one_of(name: str, choices: Sequence[str], default: str = "") -> str:
    """Return the variable's value, which must be one of the choices."""
    value = text(name, default)
    if value and value not in choices:
        refuse(f"{name}={value!r} is none of {', '.join(choices)}.")
    return value


def comma_separated(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return networks of addresses, as 10.0.0.0/8 or one; anything else stops the program."""
    try:
        return [ip_network(word) for word in comma_separated(name)]
    except ValueError as error:
        refuse(f"{name}: {error}; name networks as 10.0.0.0/8, separated by commas.")


def origins(name: str) -> list[str]:
    """Return origins of pages, as https://quorum.example.org; anything else stops the program."""
    # A browser sends an origin without a slash at its end, and Django compares the texts.
    found = [word.rstrip("/") for word in comma_separated(name)]
    for word in found:
        if not _is_web_address(word) or urlsplit(word).path:
            refuse(
                f"{name}: {word!r} must begin with https:// (or http://) and name a host alone, as "
                "https://quorum.example.org."
            )
    return found


def sub_path(name: str) -> str:
    """Return the path below which the site stands, as /quorum; "" where it has its own host."""
    value = text(name).rstrip("/")
    if value and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", value):
        refuse(f"{name}={value!r} must be a path that begins with a slash, as /quorum.")
    return value


def web_address(name: str) -> str:
    """Return the address of a server without a slash at its end, or "" where none is set."""
    value = text(name).rstrip("/")
    if value and not _is_web_address(value):
        refuse(f"{name}={value!r} must be an address that begins with https:// (or http://).")
    return value


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:  # a bracket that does not close, say
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def time_zone(name: str, default: str) -> str:
    """Return the name of a time zone that this machine knows; anything else stops the program."""
    value = text(name, default)
    try:
        ZoneInfo(value)
    # ZoneInfo looks for a file of that name: a folder, or a path that leads elsewhere, has an error of its own.
    except (KeyError, ValueError, OSError):
        refuse(f"{name}={value!r} is no time zone: name one as Europe/Berlin or UTC.")
    return value


def var() -> Path:
    """Return the folder that holds everything this instance writes (QUORUM_VAR)."""
    return Path(text("QUORUM_VAR", str(ROOT / "var"))).resolve()
