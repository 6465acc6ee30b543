"""Append-only tables: rows are only added, and a change is recorded as another row."""

import pgtrigger

# For `Meta.triggers`.
TRIGGERS = [
    pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete),
    pgtrigger.Trigger(
        name="no_truncate",
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        operation=pgtrigger.Truncate,
        func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;",
    ),
]
