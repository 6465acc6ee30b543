"""Escalated pairs with a debate to read: for the pages of judging and adjudication, and their bench."""

from corpus.collections.task_order import next_place
from corpus.models import Collection, Item, Pair
from judges.domain.quotes import locate_quote
from judges.models import Attempt, Campaign, JudgeVersion
from tests.evidence import build_attempt, make_campaign, make_judge, make_prompt
from tests.factories import make_document, make_pair, make_query

TEXT = """\
A mapping object maps hashable values to arbitrary objects. Mappings are mutable objects. There is currently only one \
standard mapping type, the dictionary. A dictionary's keys are almost arbitrary values. Values that are not hashable, \
that is, values containing lists, dictionaries or other mutable types, may not be used as keys. Values that compare \
equal (such as 1, 1.0, and True) can be used interchangeably to index the same dictionary entry.

Dictionaries preserve insertion order. Note that updating a key does not affect the order. Keys added after deletion \
are inserted at the end. Dictionaries and dictionary views are reversible. Changed in version 3.7: dictionary order is \
guaranteed to be insertion order. This behaviour was an implementation detail of CPython from 3.6."""

FOR_1 = "Dictionaries preserve insertion order."
FOR_2 = "Dictionaries preserve insertion order. Note that updating a key does not affect the order."
AGAINST_1 = "Note that updating a key does not affect the order. Keys added after deletion are inserted at the end."
AGAINST_2 = "A dictionary may reorder its keys at any time."
ARGUMENT = [
    ("for", 1, 1, "The passage states the order in which a dictionary gives its keys.", [FOR_1]),
    ("against", 1, 0, "It tells what happens on an update, not which order iteration has.", [AGAINST_1]),
    ("for", 2, 1, "Insertion order is the order of iteration; the sentence says so plainly.", [FOR_2, FOR_1]),
    ("against", 2, 0, "The opponent stretches one sentence over what is not said.", [AGAINST_2]),
]


def debating_campaign(collection: Collection) -> Campaign:
    judges = [make_judge("debater-a"), make_judge("debater-b")]
    return make_campaign(collection, judges, policy="debate")


def escalate(campaign: Campaign, pair: Pair, **values: object) -> Item:
    """The pair was argued over two rounds without agreement, and waits for people."""
    store_debate(campaign, pair, ARGUMENT)
    values.setdefault("place", next_place())
    return Item.objects.create(
        collection=pair.collection, pair=pair, campaign=campaign.pk, reason="disagreement", **values
    )


def store_debate(campaign: Campaign, pair: Pair, turns: list[tuple[str, int, int, str, list[str]]]) -> None:
    """Store the turns of a debate: side, round, verdict, reason, quotes."""
    judges = JudgeVersion.objects.in_bulk(campaign.debaters)
    prompt = make_prompt()
    rows = []
    for side, round, verdict, reason, quotes in turns:
        judge = judges[campaign.debaters[side == "against"]]
        found = [locate_quote(quote, pair.document.text) for quote in quotes]
        told = [{"text": one.text, "start": one.start, "end": one.end} for one in found]
        values = {"role": side, "round": round, "reason": reason, "quotes": told}
        rows.append(build_attempt(campaign, pair, judge, verdict, prompt, **values))
    Attempt.objects.bulk_create(rows)


def make_scene(collection: Collection, count: int, *, text: str = TEXT, **values: object) -> list[Item]:
    """`count` escalated pairs of one query's worth of reading each."""
    campaign = debating_campaign(collection)
    answers = ["In the order in which they were inserted.", "Insertion order, guaranteed since version 3.7."]
    questions = ["In which order does a dictionary give its keys?", "Is the order of a dictionary's keys reliable?"]
    return [
        escalate(
            campaign,
            make_pair(
                collection,
                make_query(collection, f"{questions[n % 2]}", answers=answers),
                make_document(collection, text, title="Mapping types: dict"),
            ),
            **values,
        )
        for n in range(count)
    ]
