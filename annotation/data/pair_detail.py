"""All that is stored about one pair: debate, votes, label, people's judgments, attempts."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.access.hidden_names import number_people
from annotation.models import Assignment
from annotation.work.judging.debates import debate_of, text_of
from annotation.work.judging.document import document_html, formatted_answers
from annotation.work.threads.selectors import list_threads
from corpus.document_limit import SHOWN
from corpus.models import Pair
from judges.campaigns import selectors
from judges.campaigns.selectors import AttemptView
from judges.models import Attempt, Campaign


def load_pair_detail(pair: Pair, *, hides_people: bool) -> dict[str, Any]:
    """Load the data of the page about a pair, for admins and viewers, in a fixed number of statements.

    `hides_people`: people have a number in place of their name.
    """
    document, collection = pair.document, pair.document.collection
    work = list(pair.work.select_related("campaign").order_by("-campaign"))
    # A campaign that was cancelled before it reached the pair says nothing about it.
    finished = [row for row in work if row.ended_at is not None] or work
    fields = ("round", "verdict", "reason", "quotes", "window")
    turns = [
        {name: getattr(turn, name) for name in fields}
        | {"couple": turn.agent_pair, "side": turn.role, "judge": turn.judge.name}
        for turn in selectors.debate_of(pair)
        if turn.verdict is not None
    ]
    debate = debate_of(turns, len(document.text))
    attempts = selectors.attempts_of(pair)
    # Withdrawn judgments too, the oldest first.
    judgments = list(pair.judgments.select_related("assessor", "supersedes", "superseded_by").order_by("pk"))
    # Who was assigned the pair; among them those who skipped it.
    assignments = list(
        Assignment.objects.filter(item__pair=pair).select_related("membership__user", "item").order_by("lent_at")
    )
    if hides_people:
        numbers = number_people(collection)
        for judgment in judgments:
            judgment.assessor.name = numbers.get(judgment.assessor_id, judgment.assessor.name)
        for assignment in assignments:
            assignment.membership.user.username = numbers[assignment.membership.assessor_id]
    name, version = document.external_id, document.version
    windows = {row.campaign_id: row.window for row in work}
    costs = [view.attempt.cost for view in attempts if not view.attempt.cached]
    votes = _last_votes([view for view in attempts if view.window == windows.get(view.campaign_id, 0)])
    return {
        "pair": pair,
        "label": pair.labels.filter(aspect=None).first(),
        "work": work,  # Its rows in campaigns, the newest first.
        "debate": debate,
        "latency": selectors.latency_of(pair, finished[0].campaign) if finished else None,
        "attempts": attempts,
        "judgments": judgments,
        "assignments": assignments,
        # What annotators wrote about it, with the answers: between them and admins.
        "threads": [] if hides_people else list_threads(assignments),
        # Contributions and evidence written about the pair, the newest first.
        "targets": list(pair.targets.select_related("withdrawn_by").order_by("-version")),
        # Characters of the document, where judges see only a part of it.
        "long": len(document.text) if len(document.text) > SHOWN else 0,
        "title": text_of(document.title),
        "document": text_of(document.text),
        "source": _("%(name)s, version %(version)s") % {"name": name, "version": version} if version > 1 else name,
        "html": document_html(document.text, debate.spans, form=collection.document_format, source=document.html),
        "is_formatted": collection.document_format == "markdown" or bool(document.html),
        "shown_answers": formatted_answers(
            [text_of(answer) for answer in pair.query.answers], pair.query.answers_html, collection.document_format
        ),
        "votes": votes,
        # `judge #2` is the second sample of one judge.
        "named_votes": [(selectors.voter_name(vote), vote) for vote in votes],
        # Reference grades measure labels and never become one.
        "gold": [judgment for judgment in judgments if judgment.assessor.kind == "reference"],
        # None when a price is unknown.
        "cost": None if None in costs else sum(costs),
    }


def _last_votes(attempts: Sequence[AttemptView]) -> list[Attempt]:
    """Return the pair's last votes, those of a complete panel first, in the panel's order."""
    by_campaign: dict[int, list[Attempt]] = defaultdict(list)
    for view in attempts:
        if view.attempt.role == "vote" and view.attempt.counts:
            by_campaign[view.attempt.campaign_id].append(view.attempt)
    if not by_campaign:
        return []

    def rank(pk: int) -> tuple[bool, int]:
        campaign = by_campaign[pk][0].campaign
        labelled = sum(vote.outcome == Attempt.Outcome.LABELLED for vote in by_campaign[pk])
        return campaign.policy != Campaign.Policy.SINGLE and labelled >= len(campaign.voters), pk

    last = max(by_campaign, key=rank)
    return sorted(by_campaign[last], key=lambda vote: vote.place)
