"""Tables to which rows are only added: nobody changes, deletes or empties them, whatever they may do otherwise."""

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction

from corpus.models import append_only

pytestmark = pytest.mark.django_db

TABLES = [
    model._meta.db_table
    for model in apps.get_models()
    if any(trigger in append_only.TRIGGERS for trigger in getattr(model._meta, "triggers", []))
]


def refusal(statement: str) -> str:
    """What the database says to it."""
    with pytest.raises(DatabaseError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    return str(refused.value)


def test_what_was_said_paid_and_done_is_among_them() -> None:
    assert len(TABLES) >= 17
    assert {"corpus_judgment", "corpus_aspectrevision", "judges_attempt", "annotation_auditentry"} <= set(TABLES)


@pytest.mark.parametrize("table", [*TABLES, "judges_attemptbody", "judges_attemptbody_3"])
def test_none_is_truncated(table: str) -> None:
    assert "it is append-only" in refusal(f"TRUNCATE {table} CASCADE")


def test_nor_with_what_it_hangs_on() -> None:
    assert "it is append-only" in refusal("TRUNCATE corpus_collection CASCADE")
    assert "it is append-only" in refusal("TRUNCATE judges_attemptbody")


@pytest.mark.parametrize("table", TABLES)
def test_no_row_of_any_is_changed_or_deleted(table: str) -> None:
    """A trigger that is on refuses both, row by row and without a condition; so even where a table has no row yet."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT prosrc FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
               WHERE tgrelid = %s::regclass AND tgenabled IN ('O', 'A') AND tgqual IS NULL
                 AND tgtype & 27 = 27  -- for each row, before, at DELETE and at UPDATE""",
            [table],
        )
        assert any("RAISE EXCEPTION" in source and "Cannot" in source for (source,) in cursor.fetchall())
