"""Everything that is known about one pair: debate, votes, label, people's judgments, attempts."""

from dataclasses import dataclass

from annotation import pairs
from annotation.models import Assignment
from corpus.models import Judgment, Label, Pair
from judges import selectors
from judges.models import Attempt, Work
from judges.selectors import AttemptView, Round


@dataclass(frozen=True)
class Evidence:
    """What a page about a pair shows, to admins only."""

    label: Label | None
    work: list[Work]
    """Its places in campaigns, newest first."""
    debate: list[Round]
    attempts: list[AttemptView]
    judgments: list[Judgment]
    assignments: list[Assignment]

    @property
    def votes(self) -> list[Attempt]:
        """Counted votes of the newest campaign that cast any, in the order of the panel."""
        counted = [v.attempt for v in self.attempts if v.attempt.role == "vote" and v.attempt.counts]
        newest = max((a.campaign_id for a in counted), default=None)
        return sorted((a for a in counted if a.campaign_id == newest), key=lambda a: a.sample)

    @property
    def gold(self) -> list[Judgment]:
        """Reference grades: they measure and never settle."""
        return [j for j in self.judgments if j.assessor.kind == "reference"]

    @property
    def cost(self) -> float | None:
        """USD of all attempts; None when a price is unknown."""
        costs = [view.attempt.cost for view in self.attempts if not view.attempt.cached]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


def of(pair: Pair) -> Evidence:
    """All of it, in a fixed number of statements."""
    return Evidence(
        label=pair.labels.filter(aspect=None).first(),
        work=list(pair.work.select_related("campaign").order_by("-campaign")),
        debate=selectors.debate_of(pair),
        attempts=selectors.attempts_of(pair),
        judgments=list(pairs.judgments(pair)),
        assignments=list(pairs.assignments(pair)),
    )
