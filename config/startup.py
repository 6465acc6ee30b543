"""Preparations before a command runs: services are started, and tables are brought up to date."""

import hashlib
import os
from collections.abc import Iterable
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

ADVISORY_LOCK = 0x51756F72756D  # The same for all instances of a database: "Quorum" in ASCII.
APPS = ("jobs", "store", "corpus", "judges", "annotation", "benchmark", "training", "api")

# Includes the doctor, which must run even if a service does not start, and starts the services itself.
NEEDS_NOTHING = {
    "check", "collectstatic", "compilemessages", "diffsettings", "doctor", "evaluate", "findstatic", "help",
    "makemessages", "makemigrations", "serve_model", "services", "startapp", "startproject", "version",
}  # fmt: skip
# These start processes that take as long as the first migrations, so both happen at the same time.
MIGRATES_LATER = {"demo", "serve"}
# These work with tables of any version.
MIGRATES_ITSELF = {
    "dbshell", "migrate", "optimizemigration", "showmigrations", "sqlmigrate", "squashmigrations", "test",
}  # fmt: skip


def ensure_for_command(argv: list[str]) -> None:
    """Start the services that `manage.py <argv[1:]>` needs, and bring the tables up to date."""
    command = argv[1] if len(argv) > 1 else "help"
    if command.startswith("-") or command in NEEDS_NOTHING or {"-h", "--help"} & set(argv):
        return
    refuse_unusable_settings()
    is_first = startup.is_first_start(env.var()) and not os.environ.get("DATABASE_URL")
    startup.begin_services(env.var())
    # Every command needs the models, which take about as long to load as the services take to start.
    django.setup()
    if is_first and command in MIGRATES_LATER:
        return
    wait_for_services()
    if command not in MIGRATES_ITSELF:
        # Restoring a backup is the way back after an upgrade: it replaces the newer tables.
        apply_or_refuse(takes_newer=command == "restore")
        return
    # `migrate APP NUMBER` may reverse migrations, and the stamp would then hide that they are pending.
    if addresses.are_embedded():
        remove_stamp(env.var())
    # Old code would not notice newer tables (docs/adr/0097); only newer code or `restore` can go back.
    if command == "migrate" and (schema := read_schema()).unknown:
        refuse(schema.refusal)


def wait_for_services() -> None:
    """Wait until the services answer; end the program if they do not, or cannot be used."""
    if addresses.are_embedded():
        startup.wait_for_services(env.var())
    startup.check_server(env.var())


def migrate_first_start() -> None:
    """Create the tables on the first start, after a command has started its children."""
    wait_for_services()
    apply_or_refuse()


def refuse_unusable_settings() -> None:
    """End the program with exit code 2 if an environment variable is obviously wrong."""
    embedded.database_settings(env.var())
    embedded.check_redis_url(env.var())
    env.number("QUORUM_LINGER", 0)  # Checked here, because nobody sees the standard error of the keeper, which uses it.
    settings.DATABASES  # noqa: B018 - loads the settings, whose readers end the program
    if env.text("QUORUM_TRACES"):
        tracing.refuse_without_extra()
    try:
        if store := env.text("QUORUM_STORE"):
            ObjectStore(store)
    except StoreUnavailable as error:
        refuse(str(error))


def apply_or_refuse(takes_newer: bool = False) -> None:
    """Apply pending migrations to an embedded database; end the program with exit code 2 for one by URL.

    Only one of several processes applies them. Tables of a newer version are refused, because this code would write
    wrong rows, unless the command accepts them (`takes_newer`).
    """
    # Loading all migrations would slow down every command, so a stamp beside the data shows that none is pending
    # (ADR 0002).
    stamp = stamp_file(env.var())
    is_own = addresses.are_embedded() and not os.environ.get("DATABASE_URL")
    if is_own and stamp.exists() and stamp.read_text() == migrations_fingerprint():
        return
    schema = read_schema()
    if schema.unknown:
        if not takes_newer:
            refuse(schema.refusal)
    # A database by URL is never migrated without being asked, because others may be using it.
    elif is_own:
        django.setup()
        from django.core.management import call_command
        from django.db import connection

        # Of several processes, the first applies the migrations; the others wait, and then find nothing pending.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
            try:
                # Checked again under the lock, because another process may have applied them.
                current = read_schema()
                if current.is_pending:
                    say(
                        "Preparing the database: its tables (up to two minutes on a busy machine) ..."
                        if current.is_empty
                        else "Updating the tables to this version ..."
                    )
                    call_command("migrate", verbosity=0, interactive=False)
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])
        stamp.write_text(migrations_fingerprint())
    elif schema.is_pending:
        refuse("The database has pending migrations: run manage.py migrate first.")


def remove_stamp(var: Path) -> None:
    """Remove the stamp, so that the next command checks for migrations."""
    stamp_file(var).unlink(missing_ok=True)


def stamp_file(var: Path) -> Path:
    """Return the path of the applied migrations' fingerprint, beside the data."""
    return var / "postgres" / "migrated"


def migrations_fingerprint() -> str:
    """Return the sha256 of our migrations and of the versions of packages with other migrations."""
    digest = hashlib.sha256()
    for app in APPS:
        # By content and not by name, so that a migration that was edited during development counts as changed.
        for path in sorted((env.ROOT / app / "migrations").glob("*.*")):
            digest.update(f"{app}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    # The tables of these packages change with their versions.
    for package in ("django", "django-allauth"):
        digest.update(version(package).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Schema:
    """The database's tables compared with this code: migrations of a newer version, and whether some are pending."""

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


def unknown_migrations(loader: Any, applied: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those of the applied migrations that this code does not have, sorted.

    What a migration replaces is in older databases, and counts as known where all of it was applied.
    """
    unknown = set(applied) - set(loader.disk_migrations)
    for migration in loader.disk_migrations.values():
        if unknown >= set(migration.replaces):
            unknown.difference_update(migration.replaces)
    return sorted(unknown)


def read_schema() -> Schema:
    """Compare the applied migrations with those of this code."""
    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.loader import MigrationLoader
    from django.db.migrations.recorder import MigrationRecorder

    applied = MigrationRecorder(connection).applied_migrations()
    unknown = [f"{app}.{name}" for app, name in unknown_migrations(MigrationLoader(None), applied) if app in APPS]
    if unknown:
        # Django cannot plan anything for them.
        return Schema(unknown, is_pending=True, is_empty=False)
    executor = MigrationExecutor(connection)
    loader: Any = executor.loader
    is_pending = bool(executor.migration_plan(loader.graph.leaf_nodes()))
    return Schema(unknown, is_pending, is_empty=not loader.applied_migrations)
