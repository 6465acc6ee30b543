"""Which PostgreSQL a server is, and whether this version runs on it."""

import os
from pathlib import Path

from embedded import addresses
from embedded.refuse import refuse

# Major versions (docs/adr/0057). NEWEST is our own, whose pg_dump makes backups: it reads no newer server.
OLDEST, NEWEST = 15, 18


def check_server(var: Path) -> None:
    """Exit 2 where DATABASE_URL names a server of another version, 1 where it does not answer; ours is always right."""
    if not os.environ.get("DATABASE_URL"):
        return
    import psycopg

    try:
        with psycopg.connect(addresses.database_url(var), connect_timeout=10) as connection:
            version = connection.info.server_version
    except psycopg.OperationalError as error:
        refuse(f"PostgreSQL (DATABASE_URL) does not answer: {' '.join(str(error).split())}", 1)
    if line := unsupported_reason(version):
        refuse(line)


def unsupported_reason(version: int) -> str:
    """Why a server of this version (180004 is 18.4) is refused; "" when it is not."""
    major = version // 10_000
    if OLDEST <= major <= NEWEST:
        return ""
    return f"The server is PostgreSQL {major}, and this Quorum runs on {OLDEST} to {NEWEST}: use one of those."
