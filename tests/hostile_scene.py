"""A debated and labelled pair for each hostile text, which stands in every place that a stranger can write to."""

import json
import zlib

from annotation.models import Role
from corpus.collections.task_order import next_place
from corpus.models import Collection, Item, Pair, Target
from judges.domain.quotes import locate_quote
from judges.models import AttemptBody, Campaign, JudgeVersion
from judges.probes.injections import INJECTIONS
from tests.evidence import make_attempt, make_campaign, make_judge, make_label
from tests.factories import make_collection, make_document, make_member, make_pair, make_query

CALM = ("a plain remark", "another plain remark")
"""Stand where a hostile text stands otherwise: in a pair without contribution and evidence, and in one with them."""
TEXTS = (*CALM, *(one.text for one in INJECTIONS))
FIRST, LAST = "Dictionaries keep insertion order.", "Keys that are added later come last."


def wrapped(text: str) -> str:
    return f"{FIRST} {text} {LAST}"


def hostile_collection() -> Collection:
    """A pair for each of TEXTS; all wait for people, all have a label from before, every second one is relevant."""
    books = make_collection("books", title=CALM[0], instruction=f"Relevant: it answers. {INJECTIONS[0].text}")
    campaign = make_campaign(books, [make_judge("debater-a"), make_judge("debater-b")], policy="debate")
    for number, text in enumerate(TEXTS):
        _pair(books, campaign, number, text)
    for name, role in (("alice", Role.ANNOTATOR), ("charlie", Role.ADMIN)):
        make_member(books, name, role)
    return books


def _pair(books: Collection, campaign: Campaign, number: int, text: str) -> None:
    query = make_query(books, f"Which order? {text}", answers=[f"Insertion. {text}"], external_id=f"q{number:03}")
    document = make_document(books, wrapped(text), title=f"Title {text}", external_id=f"d{number:03}")
    pair = make_pair(books, query, document)
    for round in (1, 2):
        for side, judge in zip(
            ("for", "against"), JudgeVersion.objects.filter(pk__in=campaign.debaters).order_by("pk"), strict=True
        ):
            _turn(campaign, pair, judge, side, round, text)
    make_label(pair, number % 2, "debate")
    if number % 2:
        Target.objects.create(
            pair=pair,
            version=1,
            kind="judge",
            writer="debater-a",
            contribution=f"It says {text}",
            evidence=text,
            good=True,
        )
    Item.objects.create(
        collection=books, pair=pair, campaign=campaign.pk, reason="disagreement", place=next_place(), priority=number
    )


def _turn(campaign: Campaign, pair: Pair, judge: JudgeVersion, side: str, round: int, text: str) -> None:
    found = [locate_quote(quote, pair.document.text) for quote in (FIRST, text, f"Not there: {text}")]
    attempt = make_attempt(
        campaign, pair, judge, int(side == "for"), role=side, round=round, reason=f"It says {text}", error=text,
        quotes=[{"text": one.text, "start": one.start, "end": one.end} for one in found],
    )  # fmt: skip
    messages = [{"role": "user", "content": text}]
    AttemptBody.objects.create(
        campaign_id=campaign.pk,
        attempt_id=attempt.pk,
        messages=zlib.compress(json.dumps(messages).encode()),
        raw=zlib.compress(json.dumps({"choices": [text]}, ensure_ascii=False).encode()),
    )
