"""Numbers from 1 in each collection, by which campaigns, imports and exports are addressed."""

import pgtrigger
from django.db import models

from corpus.models.texts import Collection

# The counter's row is also the lock: a transaction that numbers a row of the same kind in the same
# collection waits for this one. No number is given twice, even after its row was deleted.
ASSIGN_NUMBER = """
INSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)
ON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;
RETURN NEW;
"""
# For `Meta.triggers` of each table of numbered rows.
NUMBER = pgtrigger.Trigger(
    name="number",
    when=pgtrigger.Before,
    operation=pgtrigger.Insert,
    condition=pgtrigger.Q(new__number=0),
    func=ASSIGN_NUMBER,
)


class LastNumber(models.Model):
    """The last number given to a row of a kind, which the trigger `number` increments."""

    collection = models.ForeignKey(
        Collection, models.CASCADE, null=True, related_name="+", db_index=False, help_text="Null: of rows without one."
    )
    kind = models.CharField(max_length=63, help_text="The table.")
    number = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["collection", "kind"], nulls_distinct=False, name="last_number_once")
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} {self.kind}: {self.number}"


class Numbered(models.Model):
    """A row that is addressed by its number in its collection; its primary key is never shown.

    A subclass has the field `collection`, the trigger NUMBER and a unique constraint over both fields.
    """

    number = models.PositiveIntegerField(db_default=0, editable=False, help_text="In its collection, from 1.")

    class Meta:
        abstract = True
