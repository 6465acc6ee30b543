"""Addresses of PostgreSQL and Redis, and the secret key, without any running service."""

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from embedded.refuse import refuse

# Bytes. Unix allows 107, but PostgreSQL writes a lock file with a longer name beside its socket.
LONGEST_SOCKET = 90
POSTGRES_SOCKET = ".s.PGSQL.5432"
REDIS_SOCKET = "redis.sock"
DATABASE_NAME = "quorum"
PRIVATE = 0o700


def are_embedded() -> bool:
    """Return whether this instance has embedded services: unless both have a URL."""
    return not (os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"))


def run_folder(var: Path) -> Path:
    """Return the folder of the sockets: VAR/run, or a private one in /tmp if that path is too long."""
    folder = var / "run"
    if len(os.fsencode(folder / POSTGRES_SOCKET)) <= LONGEST_SOCKET:
        return folder
    name = hashlib.sha256(os.fsencode(var)).hexdigest()[:16]
    return Path("/tmp") / f"quorum-{os.geteuid()}-{name}"


def database_url(var: Path) -> str:
    """Return the database's URL: DATABASE_URL, or that of the embedded one's socket."""
    folder = quote(str(run_folder(var)), safe="")
    return os.environ.get("DATABASE_URL") or f"postgres://postgres@/{DATABASE_NAME}?host={folder}"


def database_settings(var: Path) -> dict[str, Any]:
    """Return Django's settings for the database, from its URL."""
    url = _checked_database_url(database_url(var))
    # A server that does not answer must not delay a page for TCP's own limit of two minutes.
    options = {"connect_timeout": "5"} | {key: values[-1] for key, values in parse_qs(url.query).items()}
    return {
        "ENGINE": "django.db.backends.postgresql",
        # As in libpq, a name in the options overrides the one in the path.
        "NAME": options.pop("dbname", "") or unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": options.pop("host", "") or url.hostname or "",
        "PORT": str(url.port or ""),
        "OPTIONS": options,
    }


def _checked_database_url(address: str) -> SplitResult:
    """Return the parts of a database's URL; end the program if libpq would reject it, or if it has no name."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    # The error does not quote the address, which contains a password.
    with contextlib.suppress(ValueError, ProgrammingError):
        url = urlsplit(address)
        is_postgres = url.scheme in {"postgres", "postgresql"} and (url.port is None or url.port > 0)
        if is_postgres and {"dbname", "service"} & conninfo_to_dict(address).keys():
            return url
    refuse(
        "DATABASE_URL must look like postgres://user:password@host:5432/name, with known options behind a question "
        "mark; a password's special characters are written as %40 for @."
    )


def check_redis_url(var: Path) -> None:
    """End the program if no client could use REDIS_URL."""
    from redis.connection import ConnectionPool
    from redis.exceptions import RedisError

    address = redis_url(var)
    with contextlib.suppress(ValueError, TypeError, RedisError):
        number = urlsplit(address).path.strip("/")
        if not address.startswith("unix:") and number and not number.isdecimal():
            raise ValueError(number)
        ConnectionPool.from_url(address).make_connection()
        return
    refuse("REDIS_URL must look like redis://:password@host:6379/0 (rediss:// with TLS, or unix:///path?db=0).")


def redis_url(var: Path) -> str:
    """Return the address of Redis for redis-py."""
    return os.environ.get("REDIS_URL") or f"unix://{quote(str(run_folder(var) / REDIS_SOCKET))}?db=0"


def celery_url(var: Path) -> str:
    """Return the address of Redis for Celery, which has its own format for sockets."""
    url = urlsplit(redis_url(var))
    if url.scheme == "rediss" and "ssl_cert_reqs" not in parse_qs(url.query):
        # By default, kombu accepts any certificate, unlike redis-py.
        return f"{redis_url(var)}{'&' if url.query else '?'}ssl_cert_reqs=required"
    if url.scheme != "unix":
        return redis_url(var)
    db = parse_qs(url.query).get("db", ["0"])[-1]
    return f"redis+socket://{url.path}?virtual_host={db}"


def secret_key(var: Path) -> str:
    """Return the instance's key, which is generated once and stored in VAR."""
    make_folder(var)
    path = var / "secret_key"
    if not path.exists():
        draft = var / f".secret_key.{os.getpid()}.{secrets.token_hex(4)}"
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        # Only one of several processes can create the link, and its file is complete.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text()


def make_folder(var: Path) -> None:
    """Create VAR, which only this user may enter because of its secrets; end the program if that is impossible."""
    # In another user's folder, we would write files that its owner cannot read.
    try:
        owner = var.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        owner = os.geteuid()
    except PermissionError:
        refuse(f"{var} cannot be read by this user. Set QUORUM_VAR to a folder of your own.")
    if owner != os.geteuid():
        refuse(f"{var} belongs to another user (uid {owner}). Run as that user, or set QUORUM_VAR to your own folder.")
    try:
        var.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        keep_private(var)
    except OSError as error:
        refuse(f"{var} cannot be made ({error.strerror}). Set QUORUM_VAR to a folder that this user can write to.")


def keep_private(var: Path) -> None:
    """Make VAR private if it is ours; leave another user's folder, or a shared one like /tmp, as it is."""
    with contextlib.suppress(OSError):
        status = var.stat()
        is_open = bool(status.st_mode & 0o077) and not status.st_mode & stat.S_ISVTX
        if is_open and status.st_uid == os.geteuid():
            var.chmod(PRIVATE)
