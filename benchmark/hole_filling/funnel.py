"""The funnel of a filling, step by step from the pool to labels. Counted exactly, from the rows."""

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
# Of COUNTS: its last is how many pairs stand alike in all others.
COLUMNS = ("state", "agreed", "people", "relevant", "dropped", "n")


@dataclass(frozen=True, slots=True)
class Funnel:
    """Pairs by step. pool = judged + candidates; candidates = known + asked; asked = settled by
    judges or people, or failed, pending, or waiting for people."""

    pool: int
    judged: int  # Of the pool, by the qrels before.
    candidates: int
    known: int  # People had labelled them before.
    asked: int
    filtered: int  # Dropped by the filter: labelled 0.
    after_filter: int
    rounds: list[dict[str, int]]  # Of a debate: round, pairs that agreed in it, pairs open after it.
    labelled: int  # By judges, those of the filter too.
    to_people: int  # Escalated, or all where people judge every pair.
    people_open: int
    people_settled: int
    failed: int
    pending: int
    settled: int  # Labelled, by whom ever, and known ones.
    relevant: int  # Of those settled: the holes.

    @property
    def is_done(self) -> bool:
        """Return whether every candidate is resolved."""
        return self.settled == self.candidates

    @property
    def document(self) -> dict[str, Any]:
        """The JSON that `Filling.funnel` keeps."""
        return {**asdict(self), "is_done": self.is_done}

    @classmethod
    def begun(cls, pool: int, judged: int, candidates: int, known: int) -> "Funnel":
        """Return the funnel of a filling about which nobody has been asked."""
        asked = candidates - known
        counts: dict[str, Any] = {field.name: 0 for field in fields(cls)}
        counts |= {"pool": pool, "judged": judged, "candidates": candidates, "known": known, "asked": asked}
        return cls(**{**counts, "after_filter": asked, "pending": asked, "settled": known, "rounds": []})

    @classmethod
    def of(cls, filling: Filling) -> "Funnel":
        """Return the funnel that a filling stored last."""
        return cls(**{key: value for key, value in filling.funnel.items() if key != "is_done"})


def compute_funnel(filling: Filling) -> Funnel:
    """Count a filling's funnel now: a second for some hundred thousand pairs. `Filling.funnel` keeps the last one."""
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    filtered = campaign is not None and bool(Protocol.of(campaign.protocol).filter)
    values = _query_values(filling, campaign) | {"relevant": filling.collection.relevant_from, "filtered": filtered}
    parts = [dict(zip(COLUMNS, row, strict=True)) for row in fetch_rows(COUNTS, **values)]

    # A group counts where all the wanted columns have the wanted values.
    def count(**wanted: object) -> int:
        return sum(part["n"] for part in parts if wanted.items() <= part.items())

    # What the start counted; the array of pairs is long and stays in the database.
    begun = Funnel.of(filling)
    asked, dropped = begun.candidates - begun.known, count(dropped=True)
    # What people say counts before what judges said of the same pair.
    judges, settled_by_people = count(state="labelled", people=False), count(people=True) - begun.known
    to_people, waiting, failed, pending = asked, asked - settled_by_people, 0, 0
    rounds: list[dict[str, int]] = []
    if campaign is not None:
        waiting, failed = count(state="escalated", people=False), count(state="failed", people=False)
        to_people = waiting + settled_by_people
        # The rest: neither labelled, failed nor with people.
        pending = asked - judges - failed - to_people
        # DREAM's table 8: how many agree in each round of the debate, and how many are left.
        left = asked - dropped
        for round in range(1, campaign.rounds + 1) if RoutingPolicy(campaign.policy).debates else ():
            left -= (agreed := count(agreed=round))
            rounds.append({"round": round, "agreed": agreed, "open": left})
    return replace(
        begun,
        asked=asked,
        filtered=dropped,
        after_filter=asked - dropped,
        rounds=rounds,
        labelled=judges,
        to_people=to_people,
        people_open=waiting,
        people_settled=settled_by_people,
        failed=failed,
        pending=pending,
        settled=judges + count(people=True),
        relevant=count(people=True, relevant=True) + count(state="labelled", people=False, relevant=True),
    )


def labels_of(filling: Filling) -> list[tuple[int, int, int, str]]:
    """Query, document, grade and origin of each settled pair, by query and document."""
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    rows = fetch_rows(LABELS, **_query_values(filling, campaign))
    return [(query, document, grade, origin) for query, document, grade, origin in rows]


def _query_values(filling: Filling, campaign: Campaign | None) -> dict[str, Any]:
    alike = [one.pk for one in lifecycle.matching_campaigns(campaign)] if campaign else []
    return {"filling": filling.pk, "campaigns": alike, "final": list(FINAL)}
