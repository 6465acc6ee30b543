"""One truth for a collection: the state of each pair, whoever labelled it, in whatever campaigns came and went."""

import json
import random
from contextlib import suppress

import pytest
from django.db import connection

from annotation.home.overview.overview import collection_overview
from annotation.models import Assignment, Membership
from annotation.work.judging import submitting
from annotation.work.queue import assignment
from annotation.work.queue.annotators import AnnotatorContext, SubmittedAnswer
from annotation.work.queue.undo import undo_decision
from corpus.labels import rebuild_labels
from corpus.models import Label, Pair
from judges.campaigns import lifecycle
from judges.campaigns.pair_states import PairState, count_states, recent_states, states_of
from judges.campaigns.selectors import collection_status
from judges.costs import counters
from judges.engine.rows import LOCK_PAIRS, STORE_OUTCOMES
from judges.models import Campaign, Work
from tests.engine_parts import sums_up
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment
from tests.factories import make_collection, make_document, make_member, make_pair, make_query

pytestmark = pytest.mark.django_db
LIVE = ("running", "paused", "budget")


class History:
    """A collection to which things happen by chance, with the statements and services by which they happen."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.books = make_collection(f"books-{seed}", audit=0.5, overlap=1)
        query = make_query(self.books)
        self.pairs = [make_pair(self.books, query, make_document(self.books)) for _ in range(self.dice.randint(1, 5))]
        Pair.objects.filter(pk=self.pairs[0].pk).update(is_candidate=self.dice.random() < 0.8)
        self.people = [make_member(self.books, f"{name}-{seed}") for name in ("alice", "bob")]
        self.judge = make_judge(f"judge-{seed}")
        self.campaigns: list[Campaign] = []

    def start(self) -> None:
        campaign = make_campaign(self.books, [self.judge], state="running")
        chosen = self.dice.sample(self.pairs, self.dice.randint(1, len(self.pairs)))
        Work.objects.bulk_create(Work(campaign=campaign, pair=pair) for pair in chosen)
        counters.add(campaign.pk, "pairs", len(chosen))
        self.campaigns.append(campaign)

    def judge_pair(self) -> None:
        waiting = Work.objects.filter(campaign__in=self.campaigns, campaign__state="running", state="pending")
        work = self.dice.choice(list(waiting.order_by("pk")) or [None])
        if work is None:
            return
        Work.objects.filter(pk=work.pk).update(state="running", fence=1)
        state = self.dice.choice(["labelled", "labelled", "escalated", "failed", "running"])
        if state == "running":
            return
        label = self.dice.randint(0, 1) if state == "labelled" else None
        row = {
            "work": work.pk, "fence": 1, "campaign": work.campaign_id, "pair": work.pair_id, "label": label,
            "collection": self.books.pk, "state": state, "error": "no answer" if state == "failed" else "",
            "reason": {"escalated": self.dice.choice(["split", "disagreement"]), "failed": "error"}.get(state, ""),
            "agreed": None, "uncertainty": 0.0, "priority": 0.0, "overlap": 1, "grade": label, "origin": "ensemble",
            "assessor": make_assessor(self.books, "ensemble", "policy").pk, "drawn": self.dice.random() < 0.5,
            "stratum": "r0.m1.y" if label else "r0.m1.n", "probability": 0.5,
        }  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(LOCK_PAIRS, [[work.pair_id]])
            cursor.execute(STORE_OUTCOMES, {"rows": json.dumps([row]), "shard": 0})

    def cancel(self) -> None:
        live = [one for one in Campaign.objects.filter(collection=self.books) if one.state in LIVE]
        if live:
            lifecycle.cancel(campaign=self.dice.choice(live))

    def pause(self) -> None:
        live = [one for one in Campaign.objects.filter(collection=self.books) if one.state == "running"]
        if live:
            lifecycle.pause(campaign=self.dice.choice(live))

    def load_grades(self) -> None:
        other = make_assessor(self.books, "panel", self.dice.choice(["human-import", "reference", "judge-import"]))
        pair = self.dice.choice(self.pairs)
        if not pair.judgments.filter(assessor=other).exists():
            make_judgment(pair, other, self.dice.randint(0, 1))
            rebuild_labels(self.books)

    def person_judges(self) -> None:
        person = self.dice.choice(self.people)
        desk = AnnotatorContext.of(Membership.objects.select_related("collection").get(pk=person.pk))
        assignment.in_transaction(lambda db: submitting.claim(db, desk))
        lease = Assignment.objects.filter(membership=person, state="open").first()
        if lease is not None:
            answer = SubmittedAnswer(lease.item_id, lease.token, grade=self.dice.randint(0, 1))
            assignment.in_transaction(lambda db: assignment.submit_judgment(db, desk, answer))

    def undo(self) -> None:
        done = Assignment.objects.filter(membership__in=self.people, state="done").order_by("-pk").first()
        if done is not None:
            with suppress(assignment.DecisionRefused):
                undo_decision(done.membership, done.item_id)

    def happen(self, steps: int) -> None:
        acts = [self.judge_pair] * 6 + [self.person_judges] * 3
        acts += [self.start, self.cancel, self.pause, self.load_grades, self.undo]
        self.start()
        for _ in range(steps):
            self.dice.choice(acts)()


def expected_state(pair: Pair) -> str:
    """The rule once more, pair by pair."""
    label = Label.objects.filter(pair=pair, aspect=None).first()
    items = [item for item in pair.items.order_by("pk") if item.state != "withdrawn"]
    asked = [item for item in items if item.reason != "audit"]
    audited = len(asked) < len(items)
    work = [one for one in pair.work.select_related("campaign").order_by("-campaign_id")]
    if label is not None:
        by_people = label.origin in ("people", "adjudicator")
        only_audit = audited and not any(item.state == "settled" for item in asked)
        return "settled" if by_people and not only_audit else "labelled"
    if any(item.state in ("open", "conflict") for item in asked):
        return "open"
    for state in ("running", "pending"):
        if any(one.state == state and one.campaign.state in LIVE for one in work):
            return state
    kept = [one for one in work if one.state in ("labelled", "escalated")]
    kept += [one for one in work if one.state == "failed" and one.campaign.state != "cancelled"]
    newest = max(kept, key=lambda one: one.campaign_id, default=None)
    return "failed" if newest is not None and newest.state == "failed" else "unjudged"


def belongs(pair: Pair) -> bool:
    pair.refresh_from_db()
    work = pair.work.exclude(campaign__state="cancelled").filter(state__in=["running", "pending", "failed"])
    asked = pair.items.filter(state__in=["open", "conflict"]).exclude(reason="audit")
    return pair.is_candidate or pair.labels.exists() or asked.exists() or work.exists()


@pytest.mark.parametrize(
    "seeds", [range(25), pytest.param(range(25, 325), marks=pytest.mark.weekly)], ids=["25", "more"]
)
def test_the_states_of_all_pairs_sum_up_to_the_pairs_whatever_happened(seeds):
    met: set[str] = set()
    for seed in seeds:
        history = History(seed)
        history.happen(14)
        books, pairs = history.books, [pair for pair in history.pairs if belongs(pair)]
        expected = {pair.pk: expected_state(pair) for pair in pairs}
        assert {pk: state for pk, (state, _) in states_of(books, [one.pk for one in history.pairs]).items()} == expected
        states, status = count_states(books), collection_status(books)
        assert {key.value: n for key, n in states.counts.items() if n} == {
            state: list(expected.values()).count(state) for state in set(expected.values())
        }, seed
        assert states.pairs == len(pairs) == status["pairs"] and sums_up(status), seed
        assert sum(status["labels"].values()) == status["labelled"], seed
        assert sum(n for key, n in status["escalations"].items() if key != "audit") == status["escalated"], seed
        assert sum(states.origins.values()) == states.with_label == Label.objects.filter(pair__in=pairs).count(), seed
        assert recent_states([books.pk])[books.pk] == states
        story = collection_overview(books, None, status, states)
        assert story.resolved + status["open"] + story.in_work + status["failed"] + story.unjudged == len(pairs), seed
        met |= set(expected.values())
    assert met == {state.value for state in PairState}, "every state came up"
