"""The migrations that change all tables of an app at once."""

from collections import Counter

from django.db.migrations import AddField, AlterField, RunPython
from django.db.migrations.loader import MigrationLoader

from corpus.table_changes import ChangeTables


def test_what_changes_at_once_needs_no_classes_from_in_between() -> None:
    """The classes are those before the first and after the last operation: a field changes once, and no code runs."""
    migrations = MigrationLoader(None).disk_migrations.values()
    changes = [
        change for migration in migrations for change in migration.operations if isinstance(change, ChangeTables)
    ]
    assert len(changes) > 6
    for change in changes:
        fields = Counter(
            (operation.model_name_lower, operation.name_lower)
            for operation in change.operations
            if isinstance(operation, AddField | AlterField)
        )
        assert not [field for field, count in fields.items() if count > 1]
        assert not any(isinstance(operation, RunPython) for operation in change.operations)
