"""What a command needs before it runs: the services, and tables that are up to date."""

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

from config import env
from embedded import addresses, startup
from embedded.refuse import refuse

ADVISORY_LOCK = 0x51756F72756D  # One number for all instances of one database: "Quorum" in ASCII.
APPS = ("corpus", "judges", "annotation", "benchmark", "training", "api")

NEEDS_NOTHING = {
    "check", "collectstatic", "compilemessages", "diffsettings", "doctor", "evaluate", "findstatic", "help",
    "makemessages", "makemigrations", "serve_model", "services", "startapp", "startproject", "version",
}  # fmt: skip
MIGRATES_ITSELF = {
    "dbshell", "migrate", "optimizemigration", "showmigrations", "sqlmigrate", "squashmigrations", "test",
}  # fmt: skip


def ensure_for_command(argv: list[str]) -> None:
    """Start what `manage.py <argv[1:]>` needs, and bring the tables up to date."""
    command = argv[1] if len(argv) > 1 else "help"
    if command.startswith("-") or command in NEEDS_NOTHING or {"-h", "--help"} & set(argv):
        return
    startup.ensure_services(env.var())
    startup.check_server(env.var())
    if command not in MIGRATES_ITSELF:
        apply_or_refuse()
    elif addresses.are_embedded():
        remove_stamp(env.var())


def apply_or_refuse() -> None:
    """Apply pending migrations to an embedded database, once for all who come together; exit 2 with one by URL."""
    stamp = stamp_file(env.var())
    if addresses.are_embedded() and not os.environ.get("DATABASE_URL"):
        if not (stamp.exists() and stamp.read_text() == migrations_fingerprint()):
            _apply_migrations()
            stamp.write_text(migrations_fingerprint())
    elif are_pending():
        refuse("The database has pending migrations: run `manage.py migrate` first.")


def remove_stamp(var: Path) -> None:
    """Make the next command look for pending migrations, because this one changes the tables by itself."""
    stamp_file(var).unlink(missing_ok=True)


def stamp_file(var: Path) -> Path:
    """Return where the fingerprint of applied migrations lies: beside the data, so that it goes with them."""
    return var / "postgres" / "migrated"


def migrations_fingerprint() -> str:
    """Return the sha256 of our migrations and of the versions of the packages that bring others."""
    digest = hashlib.sha256()
    for app in APPS:
        for path in sorted((env.ROOT / app / "migrations").glob("*.py")):
            digest.update(f"{app}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    for package in ("django", "django-allauth"):
        digest.update(version(package).encode())
    return digest.hexdigest()


def are_pending() -> bool:
    """Whether the database lacks migrations of this version."""
    import django

    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _apply_migrations() -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    # Several processes may come at once: the first applies, the others wait and then find nothing pending.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
        try:
            if are_pending():
                call_command("migrate", verbosity=0, interactive=False)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])
