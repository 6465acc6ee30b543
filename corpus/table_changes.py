"""The operation with which a migration makes all changes of an app's tables at once."""

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from pgtrigger.migrations import AddTrigger


class ChangeTables(Operation):
    """Change an app's tables by all the operations inside, with the classes before the first and after the last one.

    Django rebuilds the classes of all related models after each operation that changes one, which
    took most of the time of a first start. Here they are built once, after the last operation.
    So a field may be added or altered once, and no operation may need classes from in between (RunPython).
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.new_models = {operation.name_lower for operation in operations if isinstance(operation, CreateModel)}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # The classes are a cached property, which is built again on its next use.
        state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        # The final classes of new tables have every field, constraint and index; only triggers are created separately.
        for operation in self.operations:
            if isinstance(operation, AddTrigger) or not self._changes_new_table(operation):
                operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        # The triggers of new tables are dropped with them.
        for operation in reversed(self.operations):
            if not self._changes_new_table(operation):
                operation.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return "Change all tables"

    def _changes_new_table(self, operation: Operation) -> bool:
        return getattr(operation, "model_name", "").lower() in self.new_models
