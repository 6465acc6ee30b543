"""Each assignment gets a public id of its own: until now pages showed a keyed permutation of the item's id.

Assignments that are there keep the number that pages showed, so that a page that is open meanwhile, and an address of
one's own judgments that somebody kept, still name the same pair.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.math
from django.conf import settings
from django.db import migrations, models

HALF = 25
MASK = (1 << HALF) - 1
LOWEST = 1 << 52
AT_ONCE = 10_000
UPDATE = """
UPDATE annotation_assignment a SET public_id = known.number
FROM unnest(%s::bigint[], %s::bigint[]) AS known (item, number) WHERE a.item_id = known.item
"""


def keep_numbers(apps: Any, schema_editor: Any) -> None:
    """Write the numbers that pages have shown."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT item_id FROM annotation_assignment ORDER BY item_id")
        items = [item for (item,) in cursor.fetchall()]
        for start in range(0, len(items), AT_ONCE):
            some = items[start : start + AT_ONCE]
            cursor.execute(UPDATE, [some, list(map(shown_before, some))])
        # The constraint that follows alters the table, which PostgreSQL refuses while checks of foreign keys wait.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def shown_before(item: int) -> int:
    """The number in place of an item's id up to now: a Feistel network over 50 bits with a key of the site."""
    left, right = item >> HALF, item & MASK
    for turn in range(6):
        left, right = right, left ^ _mixed(turn, right)
    return LOWEST | left << HALF | right


def _mixed(turn: int, half: int) -> int:
    digest = blake2b(half.to_bytes(4, "big"), digest_size=4, key=_key(), person=bytes([turn])).digest()
    return int.from_bytes(digest, "big") & MASK


@lru_cache(maxsize=1)
def _key() -> bytes:
    return blake2b(settings.SECRET_KEY.encode(), digest_size=32, person=b"item numbers").digest()


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0019_gold_arguments"),
        ("corpus", "0017_current_judgment"),
    ]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="public_id",
            field=models.BigIntegerField(
                db_default=django.db.models.expressions.CombinedExpression(
                    django.db.models.functions.comparison.Cast(
                        django.db.models.functions.math.Floor(
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.functions.math.Random(), "*", models.Value(4503599627370496.0)
                            )
                        ),
                        models.BigIntegerField(),
                    ),
                    "+",
                    models.Value(4503599627370496),
                ),
                help_text="Random: stands for the item on this person's pages (Assignment.item_of).",
            ),
        ),
        migrations.RunPython(keep_numbers, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(fields=("membership", "public_id"), name="assignment_public_id"),
        ),
    ]
