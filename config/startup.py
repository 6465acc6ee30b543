"""Needs of a command before it runs: the services, and tables that are up to date."""

import hashlib
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django
from django.conf import settings

import embedded
from config import env
from config.operating import tracing
from embedded import addresses, startup
from embedded.refuse import refuse, say
from store.objects import ObjectStore, StoreUnavailable

ADVISORY_LOCK = 0x51756F72756D  # One number for all instances of one database: "Quorum" in ASCII.
APPS = ("jobs", "store", "corpus", "judges", "annotation", "benchmark", "training", "api")

# The doctor is here, too: it must run where a service does not start, and starts what it can by itself.
NEEDS_NOTHING = {
    "check", "collectstatic", "compilemessages", "diffsettings", "doctor", "evaluate", "findstatic", "help",
    "makemessages", "makemigrations", "serve_model", "services", "startapp", "startproject", "version",
}  # fmt: skip
# These start processes that take as long to begin as the first migrations do: both at once.
MIGRATES_LATER = {"demo", "serve"}
# These work on the tables as they are, whatever version they have.
MIGRATES_ITSELF = {
    "dbshell", "migrate", "optimizemigration", "showmigrations", "sqlmigrate", "squashmigrations", "test",
}  # fmt: skip


def ensure_for_command(argv: list[str]) -> None:
    """Start what `manage.py <argv[1:]>` needs, and bring the tables up to date."""
    command = argv[1] if len(argv) > 1 else "help"
    if command.startswith("-") or command in NEEDS_NOTHING or {"-h", "--help"} & set(argv):
        return
    refuse_unusable_settings()
    is_first = startup.is_first_start(env.var()) and not os.environ.get("DATABASE_URL")
    startup.begin_services(env.var())
    # Every command needs the models, which take a second to load: as long as the services take to answer.
    django.setup()
    if is_first and command in MIGRATES_LATER:
        return
    wait_for_services()
    if command not in MIGRATES_ITSELF:
        # A backup of before an upgrade is how one goes back: it replaces the newer tables.
        apply_or_refuse(takes_newer=command == "restore")
        return
    # `migrate APP NUMBER` may go back, after which the stamp would hide pending migrations.
    if addresses.are_embedded():
        remove_stamp(env.var())
    # Old code would take newer tables for its own (docs/adr/0097); going back is for the newer code, or for `restore`.
    if command == "migrate" and (schema := read_schema()).unknown:
        refuse(schema.refusal)


def wait_for_services() -> None:
    """Return when the services answer; exit where they do not, or cannot be used."""
    if addresses.are_embedded():
        startup.wait_for_services(env.var())
    startup.check_server(env.var())


def migrate_first_start() -> None:
    """Make a first start's tables, for a command that has begun its children."""
    wait_for_services()
    apply_or_refuse()


def refuse_unusable_settings() -> None:
    """Exit 2 where a value of the environment can be seen to be wrong without asking anybody."""
    embedded.database_settings(env.var())
    embedded.check_redis_url(env.var())
    env.number("QUORUM_LINGER", 0)  # The keeper reads it, whose standard error nobody sees.
    settings.DATABASES  # noqa: B018 - the settings are read now, by readers that end the program
    if env.text("QUORUM_TRACES"):
        tracing.refuse_without_extra()
    try:
        if store := env.text("QUORUM_STORE"):
            ObjectStore(store)
    except StoreUnavailable as error:
        refuse(str(error))


def apply_or_refuse(takes_newer: bool = False) -> None:
    """Apply pending migrations to an embedded database, once for all who come together; exit 2 with one by URL.

    Tables of a newer version are refused, because this code would write rows that are wrong there,
    unless the command takes them.
    """
    # Reading all migrations would slow every command: a stamp beside the data says that none is pending (ADR 0002).
    stamp = stamp_file(env.var())
    is_own = addresses.are_embedded() and not os.environ.get("DATABASE_URL")
    if is_own and stamp.exists() and stamp.read_text() == migrations_fingerprint():
        return
    schema = read_schema()
    if schema.unknown:
        if not takes_newer:
            refuse(schema.refusal)
    # A database by URL is never migrated unasked: others may use it at this moment.
    elif is_own:
        _apply_migrations()
        stamp.write_text(migrations_fingerprint())
    elif schema.is_pending:
        refuse("The database has pending migrations: run manage.py migrate first.")


def remove_stamp(var: Path) -> None:
    """Make the next command look for migrations: this one changes the tables."""
    stamp_file(var).unlink(missing_ok=True)


def stamp_file(var: Path) -> Path:
    """Return where the applied migrations' fingerprint lies: beside the data."""
    return var / "postgres" / "migrated"


def migrations_fingerprint() -> str:
    """Return the sha256 of our migrations and of the versions of the packages that bring others."""
    digest = hashlib.sha256()
    for app in APPS:
        # The bytes, not the names: a migration that was edited while it was developed counts as another one.
        for path in sorted((env.ROOT / app / "migrations").glob("*.*")):
            digest.update(f"{app}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    # Tables of these packages change with their versions.
    for package in ("django", "django-allauth"):
        digest.update(version(package).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of the database against this code: migrations of a newer version, and whether some are pending."""

    unknown: list[str]
    is_pending: bool
    is_empty: bool

    @property
    def refusal(self) -> str:
        others = f" and {len(self.unknown) - 1} more" if len(self.unknown) > 1 else ""
        return (
            f"The database is of another version: this one does not know its migration {self.unknown[-1]}{others}. "
            "Install the version that migrated it, or restore a backup of before."
        )


def read_schema() -> Schema:
    """Compare the migrations that were applied with those of this code."""
    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    loader: Any = executor.loader
    known = set(loader.disk_migrations)
    # A squashed migration stands for those that it replaces, which older databases have on record.
    for migration in loader.disk_migrations.values():
        known.update(migration.replaces)
    unknown = [f"{app}.{name}" for app, name in loader.applied_migrations if app in APPS and (app, name) not in known]
    is_pending = bool(executor.migration_plan(loader.graph.leaf_nodes()))
    return Schema(sorted(unknown), is_pending, is_empty=not loader.applied_migrations)


def _apply_migrations() -> None:
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    # Several processes may come at once: the first applies, the others wait and then find nothing pending.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
        try:
            # Read again under the lock: whoever held it before may have applied them.
            schema = read_schema()
            if schema.is_pending:
                say(
                    "Preparing the database: its tables ..."
                    if schema.is_empty
                    else "Updating the tables to this version ..."
                )
                call_command("migrate", verbosity=0, interactive=False)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])
