"""Where PostgreSQL and Redis are: by URL, or our own under VAR (MECHANICS M1)."""

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def secret_key(var: Path) -> str:
    """The instance's key, made once and kept in VAR."""
    path = var / "secret_key"
    if not path.exists():
        var.mkdir(parents=True, exist_ok=True)
        path.write_text(secrets.token_urlsafe(50))
        path.chmod(0o600)
    return path.read_text()


def database(var: Path) -> dict[str, Any]:
    """Django's settings of the database."""
    url = urlsplit(os.environ["DATABASE_URL"])
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url.path.lstrip("/"),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": url.port or "",
    }


def redis_url(var: Path) -> str:
    """The address of Redis for redis-py."""
    return os.environ["REDIS_URL"]


def celery_url(var: Path) -> str:
    """The address of Redis for Celery."""
    return os.environ["REDIS_URL"]


def ensure_for_command(argv: list[str]) -> None:
    """Start what the command needs."""
