"""What is known of comparisons: the sets of a collection, and the answers that count."""

from dataclasses import dataclass
from typing import Literal

from annotation.models.comparisons import ComparisonSet
from store.sql import fetch_rows, read_sql

READ_OUTCOMES = read_sql(__file__, "read_outcomes")


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """An assessor's current answer to a comparison; `first` and `second` are ids of documents."""

    comparison: int
    query_id: int
    first_id: int
    second_id: int
    outcome: str  # A value of Preference.Outcome.
    assessor_id: int
    kind: Literal["person", "judge"]
    swapped: bool


def outcomes_of(comparison_set: ComparisonSet) -> list[ComparisonOutcome]:
    """Return the answers of a set that count, each assessor's newest, in the order of comparisons and assessors."""
    return [ComparisonOutcome(*row) for row in fetch_rows(READ_OUTCOMES, set=comparison_set.pk)]
