"""All that is stored about one pair: debate, votes, label, people's judgments, attempts."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.judging.debates import debate_of, text_of
from annotation.judging.document import document_html
from annotation.models import Assignment
from corpus.document_limit import SHOWN
from corpus.models import Pair
from judges.campaigns import selectors
from judges.campaigns.selectors import AttemptView
from judges.models import Attempt, Campaign


def load_pair_detail(pair: Pair) -> dict[str, Any]:
    """Load the data of the page about a pair, for admins only, in a fixed number of statements."""
    document = pair.document
    work = list(pair.work.select_related("campaign").order_by("-campaign"))
    # A campaign that was cancelled before it came to the pair says nothing of it.
    ended = [one for one in work if one.ended_at is not None] or work
    debate = debate_of(_debate_turns(selectors.debate_of(pair)), len(document.text))
    attempts = selectors.attempts_of(pair)
    # Withdrawn ones too, oldest first.
    judgments = list(pair.judgments.select_related("assessor", "supersedes", "superseded_by").order_by("pk"))
    # Who had the pair, and what came of it besides a grade: skips and flags.
    assignments = Assignment.objects.filter(item__pair=pair).select_related("membership__user", "item")
    name, version = document.external_id, document.version
    windows = {place.campaign_id: place.window for place in work}
    votes = _last_votes([view for view in attempts if view.window == windows.get(view.campaign_id, 0)])
    return {
        "pair": pair,
        "label": pair.labels.filter(aspect=None).first(),
        "work": work,  # Its places in campaigns, newest first.
        "debate": debate,
        "latency": selectors.latency_of(pair, ended[0].campaign) if ended else None,
        "attempts": attempts,
        "judgments": judgments,
        "assignments": list(assignments.order_by("lent_at")),
        # Contribution and evidence that were written about it, newest first.
        "targets": list(pair.targets.select_related("withdrawn_by").order_by("-version")),
        # Characters of the document, where judges see a part of it only.
        "long": len(document.text) if len(document.text) > SHOWN else 0,
        "title": text_of(document.title),
        "document": text_of(document.text),
        "source": _("%(name)s, version %(version)s") % {"name": name, "version": version} if version > 1 else name,
        "html": document_html(document.text, debate.spans, markdown=document.collection.markdown),
        "votes": votes,
        # `judge #2` is the second sample of one judge.
        "named_votes": [(selectors.voter_name(vote), vote) for vote in votes],
        # Reference grades: they measure and never settle.
        "gold": [judgment for judgment in judgments if judgment.assessor.kind == "reference"],
        "cost": _sum_costs(attempts),
    }


def _last_votes(attempts: Sequence[AttemptView]) -> list[Attempt]:
    """Return the pair's last votes, those of a complete panel before others, in the order of the panel."""
    by_campaign: dict[int, list[Attempt]] = defaultdict(list)
    for view in attempts:
        if view.attempt.role == "vote" and view.attempt.counts:
            by_campaign[view.attempt.campaign_id].append(view.attempt)
    if not by_campaign:
        return []
    last = max(by_campaign, key=lambda campaign: (_is_complete(by_campaign[campaign]), campaign))
    return sorted(by_campaign[last], key=lambda vote: vote.place)


def _is_complete(votes: Sequence[Attempt]) -> bool:
    campaign = votes[0].campaign
    given = sum(vote.outcome == Attempt.Outcome.LABELLED for vote in votes)
    return campaign.policy != Campaign.Policy.SINGLE and given >= len(campaign.voters)


def _sum_costs(attempts: Sequence[AttemptView]) -> float | None:
    """Return the USD of all attempts; None when a price is unknown."""
    costs = [view.attempt.cost for view in attempts if not view.attempt.cached]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _debate_turns(turns: list[Attempt]) -> list[dict[str, object]]:
    """Return the turns with a verdict in the form that `debate_of` takes."""
    same = ("round", "verdict", "reason", "quotes", "window")
    return [
        {name: getattr(said, name) for name in same}
        | {"couple": said.agent_pair, "side": said.role, "judge": said.judge.name}
        for said in turns
        if said.verdict is not None
    ]
