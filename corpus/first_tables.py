"""The operation with which an app's first migration creates all of its tables at once."""

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from pgtrigger.migrations import AddTrigger


class CreateTables(Operation):
    """Create an app's tables as they are after all the operations inside, with constraints and indexes.

    Django rebuilds the classes of all related models after each operation that changes one, which
    took most of the time of a first start. Here they are built once, after the last operation.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # The classes are a cached property, which is built again on its next use.
        state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        # The final classes have every field, constraint and index; only triggers are created separately.
        for operation in self.operations:
            if isinstance(operation, CreateModel | AddTrigger):
                operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        # Triggers are dropped with their tables.
        for operation in reversed(self.operations):
            if isinstance(operation, CreateModel):
                operation.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return "Create all tables"
