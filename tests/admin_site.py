"""A collection in the middle of its campaign, with one of everything that the admin pages show."""

import json
import zlib
from datetime import timedelta

from django.utils import timezone

from annotation.models import Assignment, Membership, Role
from corpus.models import Collection, Item, Pair
from judges.costs import counters
from judges.models import Attempt, AttemptBody, Campaign, Work
from tests.evidence import make_assessor, make_attempt, make_audit, make_judge, make_judgment, make_label
from tests.factories import make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.kept_scene import built_once

TOPICS = [
    (
        "Which objects can be keys of a dict?",
        ["Any hashable object."],
        "Mapping types",
        "A mapping object maps hashable values to arbitrary objects. Mappings are mutable objects. "
        "There is currently only one standard mapping type, the dictionary.",
    ),
    (
        "What does the with statement do on errors?",
        ["It passes the exception to __exit__."],
        "The with statement",
        "If the suite raised an exception, its type, value and traceback are passed to __exit__. "
        "Otherwise, three None arguments are supplied.",
    ),
    ("Wann ist ein Tupel hashbar?", [], "Tuples", "A tuple is hashable only if all of its elements are hashable."),
    ("字典的键可以是什么？", ["可哈希的对象"], "映射类型", "映射对象将可哈希的值映射到任意对象。映射是可变对象。"),
    ("ما الذي يمكن أن يكون مفتاحا؟", ["كائن"], "القواميس", "يربط القاموس قيما قابلة للتجزئة بكائنات."),
]
REASONS = {
    "for": "The passage says that a mapping maps hashable values: what a key must be. <script>alert(1)</script>",
    "against": "The passage describes the type in general and does not answer the question.",
}
ROUTE = "r1.m5.y"
STATES = ["labelled", "labelled", "escalated", "labelled", "escalated", "failed", "pending", "labelled", "escalated"]


def judged_collection() -> Collection:
    """18 pairs in every state of judging, counted as the engine counts them."""
    pairs, name = 18, "books"
    collection = make_collection(
        name,
        title="Questions about the language",
        instruction="A passage is relevant when it states what the reference says about the question.",
        overlap=1,
    )
    judges = [make_judge(f"{name}-judge-{number}") for number in range(1, 6)]
    campaign = Campaign.objects.create(
        collection=collection,
        policy="debate+ensemble",
        panel="main",
        debaters=[j.pk for j in judges[:2]],
        voters=[j.pk for j in judges],
        budget=2.5,
    )
    for number in range(pairs):
        question, answers, title, text = TOPICS[number % len(TOPICS)]
        pair = make_pair(
            collection,
            make_query(collection, question, answers=answers, external_id=f"q{number}"),
            make_document(collection, text, title=title, external_id=f"doc-{number}#1"),
        )
        _judge(campaign, pair, judges, STATES[number % len(STATES)], number)
    counters.add(campaign.pk, "pairs", pairs)
    return collection


only_collection = built_once(judged_collection)
"""The same, for tests in whose tables nothing else stands yet."""


def _judge(campaign: Campaign, pair: Pair, judges: list, state: str, number: int) -> None:
    work = Work(campaign=campaign, pair=pair, state=state, claims=1)
    if state == "pending":
        work.save()
        return
    agreed = state == "labelled"
    for side, judge, verdict in (("for", judges[0], 1), ("against", judges[1], int(agreed))):
        turn = make_attempt(
            campaign, pair, judge, verdict, role=side, round=1, reason=REASONS[side], quotes=_quotes(pair),
            tokens_in=410, tokens_out=62, cost=0.000321, finish_reason="stop",
        )  # fmt: skip
        _body(turn, pair)
    if agreed:
        work.label, work.agreed_in_round = 1 - number % 2, 1
        make_label(pair, work.label, campaign.policy)
        counters.add(campaign.pk, f"labelled:{work.label}", 1)
        counters.add(campaign.pk, "agreed:1", 1)
        for place, judge in enumerate(judges):
            make_attempt(campaign, pair, judge, work.label, place=place, cost=None, tokens_in=300, tokens_out=20)
    elif state == "escalated":
        work.reason = ["disagreement", "conflict", "split"][number % 3]
        make_item(pair, work.reason, campaign=campaign.pk)
        counters.add(campaign.pk, f"escalated:{work.reason}", 1)
    else:
        work.reason, work.error = "error", "HTTP 503 from http://127.0.0.1:8001/v1: overloaded, 4 tries"
        counters.add(campaign.pk, "failed", 1)
    work.save()
    numbers = {"calls": 7, "cost": 0.000642, "tokens_in": 2320, "tokens_out": 224}
    for key, number in {**numbers, "calls_without_price": 5 if agreed else 0}.items():
        counters.add(campaign.pk, key, number)


def _quotes(pair: Pair) -> list[dict[str, object]]:
    sentence = pair.document.text.split(".")[0]
    return [{"text": sentence, "start": 0, "end": len(sentence)}, {"text": "Not there.", "start": None, "end": None}]


def _body(attempt: Attempt, pair: Pair) -> None:
    messages = [
        {"role": "system", "content": "You argue one side of a question about relevance."},
        {"role": "user", "content": f"<data-5f>\n{json.dumps({'query': pair.query.text})}\n</data-5f>"},
    ]
    answer = {"message": {"content": '{"response": "yes"}'}}
    raw = json.dumps({"choices": [answer], "usage": {"prompt_tokens": 410}})
    AttemptBody.objects.create(
        campaign_id=attempt.campaign_id,
        attempt_id=attempt.pk,
        messages=zlib.compress(json.dumps(messages).encode()),
        raw=zlib.compress(raw.encode()),
    )


def people_at_work(collection: Collection) -> dict[str, Membership]:
    """Alice annotates, Bob adjudicates, Charlie administers; Alice judged, skipped and flagged."""
    roles = {"alice": Role.ANNOTATOR, "bob": Role.ADJUDICATOR, "charlie": Role.ADMIN}
    people = {name: make_member(collection, name, role) for name, role in roles.items()}
    alice = people["alice"]
    items = list(Item.objects.filter(collection=collection).order_by("pk"))
    _settle(items[0], alice)
    skipped = {"state": "skipped", "skip_reason": "language"}
    flagged = {"state": "done", "flagged": True, "flag_note": "two meanings"}
    for item, values in zip(items[1:3], (skipped, flagged), strict=True):
        Assignment.objects.create(item=item, membership=alice, **_ended(), **values)
    Item.objects.filter(pk=items[2].pk).update(state="conflict", taken=1, done=1)
    reference = make_assessor(collection, "reference", "reference")
    for pair in Pair.objects.filter(collection=collection).order_by("pk")[:6]:
        make_judgment(pair, reference, pair.pk % 2)
    return people


def _settle(item: Item, member: Membership) -> None:
    judgment = make_judgment(item.pair, member.assessor, 1, item=item, milliseconds=18_400, comment="clear")
    Assignment.objects.create(item=item, membership=member, state="done", judgment=judgment, **_ended())
    Item.objects.filter(pk=item.pk).update(state="settled", taken=1, done=1, settled_at=timezone.now())
    make_label(item.pair, 1)
    counters.add(item.campaign or 0, "settled", 1)


def _ended() -> dict[str, object]:
    now = timezone.now()
    return {"lease_until": now, "ended_at": now - timedelta(minutes=3)}


def audited(books: Collection, right: int, wrong: int, route: str = ROUTE) -> Campaign:
    """A route of `right` + `wrong` labelled pairs, all drawn and settled by two people."""
    campaign = Campaign.objects.get(collection=books)
    people = [make_assessor(books, f"auditor-{route}-{place}") for place in range(2)]
    for number in range(right + wrong):
        pair = make_pair(books, make_query(books, external_id=f"audited-{route}-{number}"))
        Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=1, claims=1, stratum=route)
        make_audit(campaign, pair, people, int(number < right), route)
    for key in (f"route:{route}", "labelled:1", "agreed:1", "pairs", "audited"):
        counters.add(campaign.pk, key, right + wrong)
    return campaign
