"""The state of each pair of a collection, whoever labelled it and in whichever campaign: one statement for all readers.

Every pair has one state, so the states of a collection sum up to its pairs. A label counts before everything else: what
a later campaign asks once more takes nothing away. A campaign that was cancelled leaves its labels and what it gave to
people; its failures and what it never judged are not judged.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from django.core.cache import cache
from django.db import connection
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from corpus.collections.task_order import MEASURING
from corpus.labels import ADJUDICATOR, PEOPLE
from corpus.models import Collection

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


_APART = ", ".join(f"'{reason}'" for reason in ("audit", "evidence", *MEASURING))
_BY_PEOPLE = f"'{PEOPLE}', '{ADJUDICATOR}'"
# A row for each pair with current texts that is to be judged, or is judged. `reason`: why people were asked;
# `agreed`: the round of its newest debate that agreed; `audited`: people check its automatic label, or have.
# A pair that people met in an audit alone stays labelled by judges, with the verdict that was audited.
_STATES = f"""
SELECT p.collection_id AS collection, p.id AS pair,
    CASE WHEN l.origin NOT IN ({_BY_PEOPLE}) THEN 'labelled'
         WHEN l.origin IS NOT NULL AND asked.audited AND asked.settled IS NULL THEN 'labelled'
         WHEN l.origin IS NOT NULL THEN 'settled'
         WHEN asked.open IS NOT NULL THEN 'open'
         WHEN judged.running THEN 'running'
         WHEN judged.pending THEN 'pending'
         WHEN judged.failed > COALESCE(judged.ended[1], 0) THEN 'failed'
         ELSE 'unjudged' END AS state,
    CASE WHEN l.origin IN ({_BY_PEOPLE}) THEN asked.verdict ELSE (l.grade >= c.relevant_from)::int END AS verdict,
    CASE WHEN l.origin IN ({_BY_PEOPLE}) THEN COALESCE(asked.settled, '{IMPORTED}') ELSE asked.open END AS reason,
    COALESCE(l.origin, '') AS origin, COALESCE(judged.ended[2], 0) AS agreed, COALESCE(asked.audited, false) AS audited
FROM corpus_pair p
JOIN corpus_collection c ON c.id = p.collection_id
JOIN corpus_query q ON q.id = p.query_id AND q.is_current
JOIN corpus_document d ON d.id = p.document_id AND d.is_current
LEFT JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
LEFT JOIN (
    SELECT i.pair_id, bool_or(i.reason = 'audit' AND i.state <> 'withdrawn') AS audited,
        (array_agg(i.reason ORDER BY i.id) FILTER (
            WHERE i.state IN ('open', 'conflict') AND i.reason NOT IN ({_APART})))[1] AS open,
        (array_agg(i.reason ORDER BY i.id DESC) FILTER (
            WHERE i.state = 'settled' AND i.reason NOT IN ({_APART})))[1] AS settled,
        (SELECT a.label FROM judges_audit a WHERE a.pair_id = i.pair_id ORDER BY a.campaign_id DESC LIMIT 1) AS verdict
    FROM corpus_item i WHERE i.collection_id = ANY({{collections}}) {{of_items}} GROUP BY i.pair_id
) asked ON asked.pair_id = p.id
LEFT JOIN (
    SELECT w.pair_id, bool_or(g.live AND w.state = 'running') AS running,
        bool_or(g.live AND w.state = 'pending') AS pending,
        max(w.campaign_id) FILTER (WHERE w.state = 'failed' AND NOT g.cancelled) AS failed,
        max(ARRAY[w.campaign_id, COALESCE(w.agreed_in_round, 0)]) FILTER (
            WHERE w.state IN ('labelled', 'escalated')) AS ended
    FROM judges_work w JOIN (
        SELECT id, state IN ('running', 'paused', 'budget') AS live, state = 'cancelled' AS cancelled
        FROM judges_campaign WHERE collection_id = ANY({{collections}}) AND kind = 'judging'
    ) g ON g.id = w.campaign_id {{of_work}} GROUP BY w.pair_id
) judged ON judged.pair_id = p.id
WHERE p.collection_id = ANY({{collections}}) {{of_pairs}} AND (
    p.is_candidate OR l.origin IS NOT NULL OR asked.open IS NOT NULL
    OR judged.running OR judged.pending OR judged.failed IS NOT NULL)
"""
_EVERY = {"of_items": "", "of_work": "", "of_pairs": ""}
_SOME = {
    "of_items": "AND i.pair_id = ANY(%(pairs)s)",
    "of_work": "WHERE w.pair_id = ANY(%(pairs)s)",
    "of_pairs": "AND p.id = ANY(%(pairs)s)",
}
COUNT = f"""
SELECT collection, state, verdict, reason, origin, agreed, audited, count(*)
FROM ({_STATES.format(collections="%(collections)s", **_EVERY)}) found GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
OF_PAIRS = f"SELECT pair, state, reason FROM ({_STATES.format(collections='%(collections)s', **_SOME)}) found"


def write_states(collection: Collection) -> str:
    """Return a SELECT of every pair of the collection with its state, without parameters: to be joined or filtered."""
    return _STATES.format(collections=f"ARRAY[{int(collection.pk)}]::bigint[]", **_EVERY)


def states_of(collection: Collection, pairs: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the state of each of these pairs, with the reason why people were asked, or empty."""
    with connection.cursor() as cursor:
        cursor.execute(OF_PAIRS, {"collections": [collection.pk], "pairs": list(pairs)})
        return {pair: (state, reason or "") for pair, state, reason in cursor.fetchall()}


@dataclass(slots=True)
class PairStates:
    """How many pairs of a collection are in each state, and more of some: it all counts pairs, each once."""

    counts: dict[PairState, int] = field(default_factory=lambda: dict.fromkeys(PairState, 0))
    labels: dict[str, int] = field(default_factory=dict)  # Labelled by judges: by verdict, "0" and "1".
    reasons: dict[str, int] = field(default_factory=dict)  # Settled and open: by why people were asked.
    agreed: dict[str, int] = field(default_factory=dict)  # By the round in which the newest debate agreed.
    origins: dict[str, int] = field(default_factory=dict)  # Of pairs with a label: by whom it is.
    audits: int = 0  # Labelled by judges, and drawn for people to check.

    @property
    def pairs(self) -> int:
        """Return the number of all pairs."""
        return sum(self.counts.values())

    @property
    def with_label(self) -> int:
        """Return the number of pairs that have a label."""
        return self.counts[PairState.LABELLED] + self.counts[PairState.SETTLED]

    @property
    def percent(self) -> int:
        """Return the share of pairs with a label in percent, rounded down: 100 means all."""
        return 100 * self.with_label // self.pairs if self.pairs else 0

    def add(self, row: tuple[str, int | None, str | None, str, int, bool, int]) -> None:
        """Add pairs that are alike."""
        state, verdict, reason, origin, agreed, audited, pairs = row
        self.counts[PairState(state)] += pairs
        if state == PairState.LABELLED:
            _add(self.labels, str(verdict or 0), pairs)
            self.audits += pairs if audited else 0
        if state in (PairState.SETTLED, PairState.OPEN) and reason:
            _add(self.reasons, reason, pairs)
        if agreed and state in (PairState.LABELLED, PairState.SETTLED, PairState.OPEN):
            _add(self.agreed, str(agreed), pairs)
        if origin:
            _add(self.origins, origin, pairs)


def _add(counts: dict[str, int], key: str, pairs: int) -> None:
    counts[key] = counts.get(key, 0) + pairs


def count_states(collection: Collection) -> PairStates:
    """Count the pairs of a collection by state, as they are now. One statement over all its pairs."""
    return _count([collection.pk])[collection.pk]


def recent_states(collections: Iterable[int]) -> dict[int, PairStates]:
    """Count the pairs of each collection (by id) by state; of large ones the counts may be some seconds old.

    For pages that ask every few seconds. One statement at most.
    """
    every = list(collections)
    keys = {pk: f"pair-states:{pk}" for pk in every}
    stored = cache.get_many(keys.values()) if every else {}
    found = {pk: cast(PairStates, stored[key]) for pk, key in keys.items() if key in stored}
    missing = [pk for pk in every if pk not in found]
    for pk, states in (_count(missing) if missing else {}).items():
        found[pk] = states
        if states.pairs > LARGE:
            # The larger, the longer it takes to count, and the less a few pairs matter.
            cache.set(keys[pk], states, max(KEPT_S, states.pairs // 10_000))
    return found


def _count(collections: list[int]) -> dict[int, PairStates]:
    found: dict[int, PairStates] = defaultdict(PairStates)
    found.update({pk: PairStates() for pk in collections})
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"collections": collections})
        for collection, *row in cursor.fetchall():
            found[collection].add(tuple(row))
    return found
