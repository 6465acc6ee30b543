"""Readers of environment variables: every setting of an instance comes from here."""

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from corpus.collections import secrets
from corpus.errors import BadInput

ROOT = Path(__file__).resolve().parent.parent


def text(name: str, default: str = "") -> str:
    """Return the variable's value, or the default where it is unset or empty."""
    return os.environ.get(name) or default


def secret(name: str) -> str:
    """Return a secret from the environment or from a secret file; one that cannot be read stops the program."""
    try:
        return secrets.read_secret(name)
    except BadInput as error:
        raise SystemExit(str(error)) from None


def flag(name: str, default: bool = False) -> bool:
    """Whether the variable is 1, true, yes or on, in any case."""
    value = text(name)
    return value.lower() in {"1", "true", "yes", "on"} if value else default


def number(name: str, default: float) -> float:
    """Return a variable as a number; anything else stops the program with one line."""
    value = text(name)
    try:
        return float(value) if value else default
    except ValueError:
        raise SystemExit(f"{name}={value!r} is not a number") from None


def comma_separated(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return networks of addresses, as 10.0.0.0/8 or a single one; anything else stops the program with one line."""
    try:
        return [ip_network(word) for word in comma_separated(name)]
    except ValueError as error:
        raise SystemExit(f"{name}: {error}; name networks as 10.0.0.0/8, separated by commas") from None


def var() -> Path:
    """Return the folder that holds everything this instance writes (QUORUM_VAR)."""
    return Path(text("QUORUM_VAR", str(ROOT / "var"))).resolve()
