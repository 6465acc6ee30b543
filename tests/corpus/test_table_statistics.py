"""A prepared statement whose plan was made for an empty table is planned anew when the table has grown."""

from collections.abc import Iterator

import pytest
from django.db import connection

from corpus.models import Collection, Document
from corpus.table_statistics import LARGE, renew_statistics
from tests.factories import make_collection

pytestmark = pytest.mark.django_db(transaction=True)


def add(collection: Collection, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO corpus_document (collection_id, external_id, version, is_current, text, metadata,
                                            content_hash, title)
               SELECT %s, gen_random_uuid()::text, 1, true, repeat('word ', 20), '{}', md5(random()::text), ''
               FROM generate_series(1, %s) n""",
            [collection.pk, number],
        )


def plan() -> str:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN EXECUTE one(1)")
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.fixture
def prepared() -> Iterator[Collection]:
    collection = make_collection()
    with connection.cursor() as cursor:
        add(collection, 1)
        cursor.execute("VACUUM (FULL, ANALYZE) corpus_document")  # what tests before left makes one row look like many
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        cursor.execute("PREPARE one (bigint) AS SELECT text FROM corpus_document WHERE id = $1")
        plan()
        yield collection
        cursor.execute("DEALLOCATE one")
        cursor.execute("RESET plan_cache_mode")


def rows_known() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'corpus_document'")
        return float(cursor.fetchone()[0])


def test_a_small_addition_costs_nothing_and_a_large_one_renews_the_plans(prepared: Collection) -> None:
    add(prepared, 10)
    before = rows_known()
    renew_statistics(10, Document)
    assert rows_known() == before
    add(prepared, 5 * LARGE)
    assert "Seq Scan" in plan()
    renew_statistics(5 * LARGE, Document)
    assert "Index Scan" in plan()
