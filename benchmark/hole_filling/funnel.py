"""The funnel of a filling: exact counts of its pairs at each step from the pool to labels."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from benchmark.hole_filling.pairs import FINAL
from benchmark.models import Filling
from judges.campaigns import lifecycle
from judges.domain.protocol import Protocol
from judges.domain.routing import RoutingPolicy
from judges.models import Campaign
from store.sql import fetch_rows, read_sql

COUNTS = read_sql(__file__, "count_funnel")
LABELS = read_sql(__file__, "read_labels")
# Of COUNTS; `n` is the number of pairs that have the same values in all other columns.
DERIVED = {"is_done", "left_out"}  # Of the document of a funnel.
COLUMNS = ("state", "agreed", "people", "relevant", "dropped", "n")


@dataclass(frozen=True, slots=True)
class Funnel:
    """Numbers of pairs by step.

    pool = judged + candidates + left_out; candidates = known + asked; each asked pair is resolved by judges or
    people, failed, pending, or waiting for people.
    """

    pool: int
    judged: int  # Pairs of the pool that the qrels before contain.
    candidates: int
    known: int  # Candidates that people had labelled before.
    asked: int
    filtered: int  # Dropped by the filter, which labels them 0.
    after_filter: int
    rounds: list[dict[str, int]]  # Of a debate: round, pairs resolved in it, pairs open after it.
    labelled: int  # By judges, including the filter.
    to_people: int  # Escalated pairs, or all if people judge every pair.
    people_open: int
    people_settled: int
    failed: int
    pending: int
    settled: int  # Labelled by judges or people, now or before.
    relevant: int  # Of the settled pairs: the holes.

    @property
    def is_done(self) -> bool:
        """Return whether every candidate is resolved."""
        return self.settled == self.candidates

    @property
    def left_out(self) -> int:
        """Return the unjudged pairs of the pool of which nobody is asked: changed texts, or not among the first."""
        return self.pool - self.judged - self.candidates

    @property
    def document(self) -> dict[str, Any]:
        """The JSON that `Filling.funnel` stores."""
        return {**asdict(self), "is_done": self.is_done, "left_out": self.left_out}

    @classmethod
    def begun(cls, pool: int, judged: int, candidates: int, people_labelled: int) -> "Funnel":
        """Return the funnel of a filling before any judge or person is asked."""
        unjudged = candidates - people_labelled
        counts: dict[str, Any] = {field.name: 0 for field in fields(cls)}
        counts |= {
            "pool": pool,
            "judged": judged,
            "candidates": candidates,
            "known": people_labelled,
            "asked": unjudged,
        }
        return cls(
            **{**counts, "after_filter": unjudged, "pending": unjudged, "settled": people_labelled, "rounds": []}
        )

    @classmethod
    def of(cls, filling: Filling) -> "Funnel":
        """Return the funnel that a filling stored last."""
        return cls(**{key: value for key, value in filling.funnel.items() if key not in DERIVED})


def compute_funnel(filling: Filling) -> Funnel:
    """Count the funnel of a filling as of now, which takes a second for some hundred thousand pairs."""
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    filtered = campaign is not None and bool(Protocol.of(campaign.protocol).filter)
    values = _query_values(filling, campaign) | {"relevant": filling.collection.relevant_from, "filtered": filtered}
    parts = [dict(zip(COLUMNS, row, strict=True)) for row in fetch_rows(COUNTS, **values)]

    def count(**conditions: object) -> int:
        return sum(part["n"] for part in parts if conditions.items() <= part.items())

    # The first counts are those of the start; the long array of pairs stays in the database.
    start = Funnel.of(filling)
    unjudged, dropped = start.candidates - start.known, count(dropped=True)
    # A label of people takes precedence over that of judges for the same pair.
    judges, settled_by_people = count(state="labelled", people=False), count(people=True) - start.known
    to_people, people_open, failed, pending = unjudged, unjudged - settled_by_people, 0, 0
    rounds: list[dict[str, int]] = []
    if campaign is not None:
        people_open, failed = count(state="escalated", people=False), count(state="failed", people=False)
        to_people = people_open + settled_by_people
        # The rest: neither labelled, failed nor with people.
        pending = unjudged - judges - failed - to_people
        # DREAM's table 8: the pairs with agreement in each round of the debate, and those still open.
        open_pairs = unjudged - dropped
        for round in range(1, campaign.rounds + 1) if RoutingPolicy(campaign.policy).debates else ():
            open_pairs -= (agreed := count(agreed=round))
            rounds.append({"round": round, "agreed": agreed, "open": open_pairs})
    return replace(
        start,
        asked=unjudged,
        filtered=dropped,
        after_filter=unjudged - dropped,
        rounds=rounds,
        labelled=judges,
        to_people=to_people,
        people_open=people_open,
        people_settled=settled_by_people,
        failed=failed,
        pending=pending,
        settled=judges + count(people=True),
        relevant=count(people=True, relevant=True) + count(state="labelled", people=False, relevant=True),
    )


def labels_of(filling: Filling) -> list[tuple[int, int, int, str]]:
    """Return query, document, grade and origin of each settled pair, by query and document."""
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    rows = fetch_rows(LABELS, **_query_values(filling, campaign))
    return [(query, document, grade, origin) for query, document, grade, origin in rows]


def _query_values(filling: Filling, campaign: Campaign | None) -> dict[str, Any]:
    alike = [same_campaign.pk for same_campaign in lifecycle.matching_campaigns(campaign)] if campaign else []
    return {"filling": filling.pk, "campaigns": alike, "final": list(FINAL)}
