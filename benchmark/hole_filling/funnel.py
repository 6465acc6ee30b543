"""How far a filling is, step by step (SPEC S8): from the pool to labels. Exact, from the rows themselves."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.db import connection

from benchmark.hole_filling.pairs import FINAL
from benchmark.models import Filling
from judges.campaigns import lifecycle
from judges.domain.protocol import Protocol
from judges.domain.routing import RoutingPolicy
from judges.models import Campaign

# What stands of each pair: its outcome in a campaign of this configuration (an ended one before one that goes on), and
# the label. A pair was dropped by the filter when nobody else was asked about it.
STANDING = """
asked AS MATERIALIZED (SELECT unnest(pairs) AS pair_id FROM benchmark_filling WHERE id = %(filling)s),
work AS MATERIALIZED (
    SELECT DISTINCT ON (w.pair_id) w.pair_id, w.state, w.label, w.agreed_in_round, w.campaign_id
    FROM asked JOIN judges_work w ON w.pair_id = asked.pair_id AND w.campaign_id = ANY(%(campaigns)s)
    ORDER BY w.pair_id, w.state IN ('pending', 'running'), w.campaign_id DESC
)
"""
SETTLED = (
    "(COALESCE(l.origin = ANY(%(final)s), false) OR COALESCE(w.state = 'labelled' AND l.grade IS NOT NULL, false))"
)
"""People said it, or the policy of this filling."""
COUNTS = f"""
WITH {STANDING}
SELECT w.state, w.agreed_in_round, COALESCE(l.origin = ANY(%(final)s), false), l.grade >= %(relevant)s,
    COALESCE(%(filtered)s AND w.state = 'labelled' AND w.label = 0 AND w.agreed_in_round IS NULL AND NOT EXISTS (
        SELECT FROM judges_attempt a WHERE a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id
            AND a.role IN ('for', 'against', 'vote')), false),
    count(*)
FROM asked LEFT JOIN work w ON w.pair_id = asked.pair_id
LEFT JOIN corpus_label l ON l.pair_id = asked.pair_id AND l.aspect_id IS NULL
GROUP BY 1, 2, 3, 4, 5
"""
LABELS = f"""
WITH {STANDING}
SELECT p.query_id, p.document_id, l.grade, l.origin
FROM asked JOIN corpus_pair p ON p.id = asked.pair_id
JOIN corpus_label l ON l.pair_id = asked.pair_id AND l.aspect_id IS NULL
LEFT JOIN work w ON w.pair_id = asked.pair_id
WHERE {SETTLED} ORDER BY p.query_id, p.document_id
"""


@dataclass(frozen=True, slots=True)
class FunnelRound:
    """Pairs whose debate agreed in this round, and those open after it."""

    round: int
    agreed: int
    open: int


@dataclass(frozen=True, slots=True)
class Funnel:
    """Pairs by step. pool = judged + candidates; candidates = known + asked; asked = settled by judges or people,
    or failed, pending, or waiting for people."""

    pool: int
    judged: int
    """Of the pool, by the qrels before."""
    candidates: int
    known: int
    """People had labelled them before."""
    asked: int
    filtered: int
    """Dropped by the filter: labelled 0."""
    after_filter: int
    rounds: list[FunnelRound]
    labelled: int
    """By judges, those of the filter too."""
    to_people: int
    """Escalated, or all where people judge every pair."""
    people_open: int
    people_settled: int
    failed: int
    pending: int
    settled: int
    """Labelled, by whom ever, and known ones."""
    relevant: int
    """Of those settled: the holes."""

    @property
    def is_done(self) -> bool:
        """Every candidate is settled."""
        return self.settled == self.candidates

    @property
    def document(self) -> dict[str, Any]:
        """As JSON: what `Filling.funnel` keeps."""
        return {**asdict(self), "is_done": self.is_done}

    @classmethod
    def begun(cls, pool: int, judged: int, candidates: int, known: int) -> "Funnel":
        """Before anybody is asked."""
        asked = candidates - known
        counts: dict[str, Any] = {field.name: 0 for field in fields(cls)}
        counts |= {"pool": pool, "judged": judged, "candidates": candidates, "known": known, "asked": asked}
        return cls(**{**counts, "after_filter": asked, "pending": asked, "settled": known, "rounds": []})

    @classmethod
    def of(cls, filling: Filling) -> "Funnel":
        """The last one that was stored."""
        stored = {key: value for key, value in filling.funnel.items() if key != "is_done"}
        return cls(**{**stored, "rounds": [FunnelRound(**one) for one in stored["rounds"]]})


@dataclass(frozen=True, slots=True)
class _Part:
    """Pairs that stand alike."""

    state: str | None
    agreed: int | None
    people: bool
    relevant: bool
    dropped: bool
    n: int


def compute_funnel(filling: Filling) -> Funnel:
    """The funnel now. Reads only; a second for some hundred thousand pairs (`Filling.funnel` keeps the last one)."""
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    filtered = campaign is not None and bool(Protocol.of(campaign.protocol).filter)
    values = _query_values(filling, campaign) | {"relevant": filling.collection.relevant_from, "filtered": filtered}
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, values)
        parts = [
            _Part(state, agreed, people, bool(relevant), dropped, n)
            for state, agreed, people, relevant, dropped, n in cursor.fetchall()
        ]
    return _build_funnel(filling, campaign, parts)


def labels_of(filling: Filling) -> list[tuple[int, int, int, str]]:
    """Query, document, grade and origin of each settled pair, by query and document."""
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    with connection.cursor() as cursor:
        cursor.execute(LABELS, _query_values(filling, campaign))
        return list(cursor.fetchall())


def _query_values(filling: Filling, campaign: Campaign | None) -> dict[str, Any]:
    alike = [one.pk for one in lifecycle.matching_campaigns(campaign)] if campaign else []
    return {"filling": filling.pk, "campaigns": alike, "final": list(FINAL)}


def _build_funnel(filling: Filling, campaign: Campaign | None, parts: list[_Part]) -> Funnel:
    # What the start counted; the array of pairs is long and stays in the database.
    begun = filling.funnel
    candidates, known = int(begun["candidates"]), int(begun["known"])
    asked = candidates - known
    judges = _sum_pairs(part for part in parts if part.state == "labelled" and not part.people)
    filtered = _sum_pairs(part for part in parts if part.dropped)
    settled_by_people = _sum_pairs(part for part in parts if part.people) - known
    if campaign is None:
        to_people, waiting, failed, pending = asked, asked - settled_by_people, 0, 0
    else:
        waiting = _sum_pairs(part for part in parts if part.state == "escalated" and not part.people)
        to_people = waiting + settled_by_people
        failed = _sum_pairs(part for part in parts if part.state == "failed" and not part.people)
        pending = asked - judges - failed - to_people
    settled = _sum_pairs(part for part in parts if part.people or part.state == "labelled")
    relevant = _sum_pairs(part for part in parts if part.relevant and (part.people or part.state == "labelled"))
    return Funnel(
        pool=int(begun["pool"]),
        judged=int(begun["judged"]),
        candidates=candidates,
        known=known,
        asked=asked,
        filtered=filtered,
        after_filter=asked - filtered,
        rounds=_agreement_rounds(campaign, parts, asked - filtered),
        labelled=judges,
        to_people=to_people,
        people_open=waiting,
        people_settled=settled_by_people,
        failed=failed,
        pending=pending,
        settled=settled,
        relevant=relevant,
    )


def _agreement_rounds(campaign: Campaign | None, parts: list[_Part], begun: int) -> list[FunnelRound]:
    """DREAM's table 8: how many agree in each round, and how many are left."""
    if campaign is None or not RoutingPolicy(campaign.policy).debates:
        return []
    found, left = [], begun
    for round in range(1, campaign.rounds + 1):
        agreed = _sum_pairs(part for part in parts if part.agreed == round)
        left -= agreed
        found.append(FunnelRound(round, agreed, left))
    return found


def _sum_pairs(parts: Iterable[_Part]) -> int:
    return sum(part.n for part in parts)
