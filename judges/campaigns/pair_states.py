"""The state of each pair of a collection, whoever labelled it and in whichever campaign: one statement for all readers.

Every pair has one state, so the states of a collection sum up to its pairs. A label counts before
everything else: what a later campaign asks once more takes nothing away. A campaign that was
cancelled leaves its labels and what it gave to people; its failures and what it never judged are
not judged.
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

IMPORTED = "import"  # Reason of a label that came with people's imported grades: nobody was asked here.
LARGE = 50_000  # Pairs above which pages may show counts that are a little old.
KEPT_S = 15


class PairState(TextChoices):
    """What became of a pair."""

    LABELLED = "labelled", _("labelled by judges")
    SETTLED = "settled", _("settled by people")
    OPEN = "open", _("waits for people")
    RUNNING = "running", _("being judged")
    PENDING = "pending", _("waiting for judges")
    FAILED = "failed", _("failed")
    UNJUDGED = "unjudged", _("not judged")


# The states themselves: the function pair_states (judges/migrations/0003_functions.sql).
COUNT = """
SELECT collection, state, verdict, reason, origin, agreed, audited, count(*)
FROM pair_states(%(collections)s) GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
OF_PAIRS = "SELECT pair, state, reason FROM pair_states(ARRAY[%(collection)s::bigint], %(pairs)s)"


def states_of(collection: Collection, pairs: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the state of each of these pairs, with the reason why people were asked, or empty."""
    rows = fetch_rows(OF_PAIRS, collection=collection.pk, pairs=list(pairs))
    return {pair: (state, reason or "") for pair, state, reason in rows}


@dataclass(slots=True)
class PairStates:
    """How many pairs are in each state, and more: all count pairs, each once."""

    counts: dict[PairState, int] = field(default_factory=lambda: dict.fromkeys(PairState, 0))
    labels: Counter[str] = field(default_factory=Counter)  # Labelled by judges: by verdict, "0" and "1".
    reasons: Counter[str] = field(default_factory=Counter)  # Settled and open: by why people were asked.
    agreed: Counter[str] = field(default_factory=Counter)  # By the round in which the newest debate agreed.
    origins: Counter[str] = field(default_factory=Counter)  # Of pairs with a label: by whom it is.
    audits: int = 0  # Labelled by judges, and drawn for people to check.

    @property
    def pairs(self) -> int:
        return sum(self.counts.values())

    @property
    def with_label(self) -> int:
        return self.counts[PairState.LABELLED] + self.counts[PairState.SETTLED]

    @property
    def percent(self) -> int:
        """Return the share of pairs with a label in percent, rounded down: 100 means all."""
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
    """Count a collection's pairs by state, as of now, in one statement."""
    return _count([collection.pk])[collection.pk]


def recent_states(collections: Iterable[int]) -> dict[int, PairStates]:
    """Count the pairs of each collection (by id) by state; of large ones the counts may be some seconds old.

    For pages that ask every few seconds. One statement at most.
    """
    every = list(collections)
    keys = {pk: f"pair-states:{pk}" for pk in every}
    stored = cache.get_many(keys.values()) if every else {}
    by_collection = {pk: cast(PairStates, stored[key]) for pk, key in keys.items() if key in stored}
    missing = [pk for pk in every if pk not in by_collection]
    for pk, states in (_count(missing) if missing else {}).items():
        by_collection[pk] = states
        if states.pairs > LARGE:
            # The larger, the longer it takes to count, and the less a few pairs matter.
            cache.set(keys[pk], states, max(KEPT_S, states.pairs // 10_000))
    return by_collection


def _count(collections: list[int]) -> dict[int, PairStates]:
    by_collection: dict[int, PairStates] = defaultdict(PairStates)
    by_collection.update({pk: PairStates() for pk in collections})
    for collection, *row in fetch_rows(COUNT, collections=collections):
        by_collection[collection].add(tuple(row))
    return by_collection
