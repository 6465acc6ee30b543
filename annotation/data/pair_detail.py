"""Everything that is known about one pair: debate, votes, label, people's judgments, attempts."""

from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from annotation.data import pairs
from annotation.judging.debates import Debate, DebateText, Stretch, debate_of, highlight_spans, text_of
from annotation.models import Assignment
from corpus.models import Judgment, Label, Pair, Target
from judges.campaigns import selectors
from judges.campaigns.selectors import AttemptView, Latency
from judges.models import Attempt, Work


@dataclass(frozen=True)
class Evidence:
    """What a page about a pair shows, to admins only."""

    pair: Pair
    label: Label | None
    work: list[Work]  # Its places in campaigns, newest first.
    debate: Debate
    latency: Latency | None  # Of its newest campaign.
    attempts: list[AttemptView]
    judgments: list[Judgment]
    assignments: list[Assignment]
    targets: list[Target]  # Contribution and evidence that were written about it, newest first.

    @property
    def title(self) -> DebateText:
        """Of the document."""
        return text_of(self.pair.document.title)

    @property
    def document(self) -> DebateText:
        """Its text."""
        return text_of(self.pair.document.text)

    @property
    def source(self) -> str:
        """The document's id, and its version where there was an earlier one."""
        document = self.pair.document
        return document.external_id + (
            _(", version %(version)s") % {"version": document.version} if document.version > 1 else ""
        )

    @cached_property
    def highlighted(self) -> list[Stretch]:
        """The document\'s text, cut where its quoted sentences begin and end."""
        return highlight_spans(self.pair.document.text, self.debate.spans)

    @property
    def votes(self) -> list[Attempt]:
        """Counted votes of the newest campaign that cast any, in the order of the panel."""
        counted = [v.attempt for v in self.attempts if v.attempt.role == "vote" and v.attempt.counts]
        newest = max((a.campaign_id for a in counted), default=None)
        return sorted((a for a in counted if a.campaign_id == newest), key=lambda a: a.sample)

    @property
    def named_votes(self) -> list[tuple[str, Attempt]]:
        """The votes, each with the name of who cast it: `judge #2` is the second sample of one judge."""
        return [(selectors.voter_name(vote), vote) for vote in self.votes]

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


def load_pair_detail(pair: Pair) -> Evidence:
    """All of it, in a fixed number of statements."""
    work = list(pair.work.select_related("campaign").order_by("-campaign"))
    return Evidence(
        pair=pair,
        label=pair.labels.filter(aspect=None).first(),
        work=work,
        debate=debate_of(_debate_turns(selectors.debate_of(pair))),
        latency=selectors.latency_of(pair, work[0].campaign) if work else None,
        attempts=selectors.attempts_of(pair),
        judgments=list(pairs.list_judgments(pair)),
        assignments=list(pairs.list_assignments(pair)),
        targets=list(pair.targets.select_related("withdrawn_by").order_by("-version")),
    )


def _debate_turns(turns: list[Attempt]) -> list[dict[str, object]]:
    """The turns that brought a verdict, as a debate is made of."""
    return [
        {
            **{"round": said.round, "couple": said.sample, "side": said.role, "judge": said.judge.name},
            **{"verdict": said.verdict, "reason": said.reason, "quotes": said.quotes},
        }
        for said in turns
        if said.verdict is not None
    ]
