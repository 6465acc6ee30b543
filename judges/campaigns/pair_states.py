"""The state of each pair of a collection, over all campaigns and people. All readers use one statement.

Every pair has one state, so the states of a collection add up to its pairs. A label takes precedence:
a later campaign that judges the pair again does not remove it. The labels and escalations of a
cancelled campaign count; pairs that it left failed or pending are not judged.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from django.core.cache import cache
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from corpus.models import Collection
from store.sql import fetch_rows

IMPORTED = "import"  # Reason of a label from imported grades of people, without a task here.
LARGE = 50_000  # Number of pairs above which pages may show cached counts.
KEPT_S = 15


class PairState(TextChoices):
    """State of a pair."""

    LABELLED = "labelled", _("labelled by judges")
    SETTLED = "settled", _("completed by people")
    OPEN = "open", _("waits for people")
    RUNNING = "running", _("being judged")
    PENDING = "pending", _("waiting for judges")
    FAILED = "failed", _("failed")
    UNJUDGED = "unjudged", _("not judged")


# The SQL function pair_states (judges/migrations/0003_functions.sql) defines the states.
COUNT = """
SELECT collection, state, verdict, reason, origin, agreed, audited, count(*)
FROM pair_states(%(collections)s) GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
OF_PAIRS = "SELECT pair, state, reason FROM pair_states(ARRAY[%(collection)s::bigint], %(pairs)s)"


def states_of(collection: Collection, pairs: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the state of each of these pairs, with the reason for which it was escalated, or ""."""
    rows = fetch_rows(OF_PAIRS, collection=collection.pk, pairs=list(pairs))
    return {pair: (state, reason or "") for pair, state, reason in rows}


@dataclass(slots=True)
class PairStates:
    """The number of pairs in each state, and by other attributes; each pair counts once."""

    counts: dict[PairState, int] = field(default_factory=lambda: dict.fromkeys(PairState, 0))
    labels: Counter[str] = field(default_factory=Counter)  # Labelled by judges: by verdict, "0" and "1".
    reasons: Counter[str] = field(default_factory=Counter)  # Settled and open: by the reason of the escalation.
    agreed: Counter[str] = field(default_factory=Counter)  # By the round in which the newest debate agreed.
    origins: Counter[str] = field(default_factory=Counter)  # Pairs with a label: by its origin.
    audits: int = 0  # Labelled by judges, and drawn for people to check.

    @property
    def pairs(self) -> int:
        return sum(self.counts.values())

    @property
    def with_label(self) -> int:
        return self.counts[PairState.LABELLED] + self.counts[PairState.SETTLED]

    @property
    def percent(self) -> int:
        """The share of pairs with a label in percent, rounded down: 100 means all."""
        return 100 * self.with_label // self.pairs if self.pairs else 0

    def add(self, row: tuple[str, int | None, str | None, str, int, bool, int]) -> None:
        state, verdict, reason, origin, agreed, audited, pairs = row
        self.counts[PairState(state)] += pairs
        if state == PairState.LABELLED:
            self.labels[str(verdict or 0)] += pairs
            self.audits += pairs if audited else 0
        if state in (PairState.SETTLED, PairState.OPEN) and reason:
            self.reasons[reason] += pairs
        if agreed and state in (PairState.LABELLED, PairState.SETTLED, PairState.OPEN):
            self.agreed[str(agreed)] += pairs
        if origin:
            self.origins[origin] += pairs


def count_states(collection: Collection) -> PairStates:
    """Count a collection's pairs by state. One statement, never cached."""
    return _count([collection.pk])[collection.pk]


def recent_states(collections: Iterable[int]) -> dict[int, PairStates]:
    """Count the pairs of each collection (by id) by state, for pages that poll. One statement at most.

    The counts of large collections may be some seconds old.
    """
    ids = list(collections)
    keys = {pk: f"pair-states:{pk}" for pk in ids}
    cached = cache.get_many(keys.values()) if ids else {}
    by_collection = {pk: cast(PairStates, cached[key]) for pk, key in keys.items() if key in cached}
    missing_ids = [pk for pk in ids if pk not in by_collection]
    for pk, states in (_count(missing_ids) if missing_ids else {}).items():
        by_collection[pk] = states
        if states.pairs > LARGE:
            # A larger collection takes longer to count, and a few pairs matter less.
            cache.set(keys[pk], states, max(KEPT_S, states.pairs // 10_000))
    return by_collection


def _count(collections: list[int]) -> dict[int, PairStates]:
    by_collection: dict[int, PairStates] = defaultdict(PairStates)
    by_collection.update({pk: PairStates() for pk in collections})
    for collection, *row in fetch_rows(COUNT, collections=collections):
        by_collection[collection].add(tuple(row))
    return by_collection
