"""The first migrations, which make all tables of an app at once."""

from django.db.migrations import AddConstraint, AddField, AddIndex, CreateModel
from django.db.migrations.loader import MigrationLoader
from pgtrigger.migrations import AddTrigger

from corpus.first_tables import CreateTables

MADE_WITH_TABLES = {CreateModel, AddField, AddIndex, AddConstraint, AddTrigger}


def test_what_is_made_at_once_leaves_nothing_out():
    """Rows and SQL are no part of a model's state: they need a migration of their own."""
    migrations = MigrationLoader(None).disk_migrations.values()
    made = [one for migration in migrations for one in migration.operations if isinstance(one, CreateTables)]
    assert made and {type(inner) for one in made for inner in one.operations} <= MADE_WITH_TABLES
