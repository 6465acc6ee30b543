"""Filling the holes: the pool, people and judges, the filled version, the funnel, and that it is safe to run twice."""

import re
from typing import Any

import pytest
from django.utils import timezone

from annotation.models import Membership
from annotation.work.judging import submitting
from annotation.work.queue import assignment
from annotation.work.queue.annotators import AnnotatorContext
from benchmark.hole_filling import planning, services, stages
from benchmark.hole_filling.funnel import Funnel, compute_funnel
from benchmark.hole_filling.options import FillingOptions
from benchmark.hole_filling.selectors import filling_page
from benchmark.hole_filling.services import advance_due, informative_pairs, prepare_filling
from benchmark.models import Filling, Qrels, Run
from benchmark.qrels import comparing, reading, versions
from corpus.collections.task_order import reprioritise_tasks
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Document, Item, Label, Query
from judges.campaigns.configurations import build_configuration
from judges.campaigns.lifecycle import pairs_to_judge, start_campaign
from judges.models import Attempt, Campaign, JudgeVersion, PromptVersion, Work
from tests import benchmark_scene as scene
from tests.benchmark_scene import start_filling
from tests.factories import client_of, make_document, make_item, make_member, make_pair, make_query
from tests.rankings import make_run, make_texts

pytestmark = pytest.mark.django_db

TRUTH = {"q1": {"a": 1, "c": 1, "e": 1}, "q2": {"b": 1, "d": 1}}
"""What people would say; every other pair is not relevant."""
KNOWN = {"q1": {"a": 1, "b": 0}, "q2": {"b": 1}}
"""What the imported qrels know."""
RUNS = {"one": {"q1": ["a", "b", "c"], "q2": ["d", "a", "b"]}, "two": {"q1": ["b", "d", "a"], "q2": ["b", "c", "a"]}}


@pytest.fixture
def books():
    texts = {name: f"Text of {name}." for name in "abcde"}
    return make_texts("books", texts, {name: f"Question {name}?" for name in TRUTH}, KNOWN)


@pytest.fixture
def runs(books):
    return [make_run(books, name, ranked) for name, ranked in RUNS.items()]


@pytest.fixture
def alice(books):
    return make_member(books, "alice")


def judge_all(member: Membership, most: int = 1000) -> list[tuple[str, str]]:
    return scene.judge_all(member, TRUTH, most)


def test_people_fill_the_holes_of_the_pool(books, runs, alice):
    """The pool to depth 3: q1 a b c d, q2 a b c d; a and b of q1 and b of q2 are judged, five are not."""
    before = versions.original_version(books)
    told = planning.preview_filling(books, runs, 3, before)
    assert told == {"queries": 2, "pool": 8, "judged": 3, "candidates": 5, "known": 0}
    shallow = {"queries": 2, "pool": 7, "judged": 3, "candidates": 4, "known": 0}
    assert planning.preview_filling(books, runs, 2, before) == shallow, "q1 a b d, q2 a b c d"
    begun = start_filling(collection=books, runs=runs, depth=3, policy="people", by="admin")
    assert (begun.state, begun.before, begun.campaign, len(begun.pairs)) == ("people", before, None, 5)
    assert sorted(Item.objects.values_list("reason", "state", "overlap")) == [("hole", "open", 1)] * 5
    funnel = compute_funnel(begun)
    assert (funnel.candidates, funnel.asked, funnel.to_people, funnel.people_open, funnel.settled) == (5, 5, 5, 5, 0)
    with pytest.raises(BadInput, match="resolved"):
        stages.finish_filling(begun)
    assert len(judge_all(alice)) == 5
    done = stages.advance_filling(begun)
    assert done.state == "filled" and done.after is not None
    assert reading.load_named(done.after) == {
        "q1": {"a": 1, "b": 0, "c": 1, "d": 0},
        "q2": {"a": 0, "b": 1, "c": 0, "d": 1},
    }
    assert done.after.counts == {"queries": 2, "judged": 8, "relevant": 4, "origins": {"original": 3, "people": 5}}
    assert done.after.parent == before
    assert comparing.diff_versions(before, done.after).counts == {"added": 5, "removed": 0, "changed": 0, "same": 3}
    assert {row["origin"] for row in comparing.diff_versions(before, done.after).rows("added")} == {"people"}
    assert done.funnel["relevant"] == 2 and done.funnel["is_done"]
    assert reading.load_named(before) == KNOWN, "the version before is as it was"


def test_the_judging_page_says_why_a_hole_came_and_takes_the_answer(books, runs, alice):
    start_filling(collection=books, runs=runs, depth=3, policy="people")
    client = client_of(alice)
    page = client.post("/c/books/judge/next/", headers={"HX-Request": "true"}).text
    assert "A system retrieved it for this query, and it has no judgment yet." in page
    sent = {name: re.search(rf'name="{name}" value="([^"]*)"', page)[1] for name in ("item", "token")}
    assert client.post("/c/books/judge/submit/", {**sent, "grade": "1"}).status_code in (200, 303)
    item, label = Item.objects.get(state="settled"), Label.objects.get()
    assert (item.reason, label.origin, label.pair) == ("hole", "people", item.pair)


def test_the_same_start_twice_asks_nobody_twice(books, runs, alice):
    options = {"collection": books, "runs": runs, "depth": 3, "policy": "people"}
    first = start_filling(**options)
    assert start_filling(**options) == first and Item.objects.count() == 5
    judge_all(alice, most=2)
    assert start_filling(**options) == first and Item.objects.count() == 5
    judge_all(alice)
    after = stages.finish_filling(first)
    assert stages.finish_filling(first) == after
    assert start_filling(**options) == first, "nothing changed since"
    assert (Filling.objects.count(), Qrels.objects.count(), Item.objects.count()) == (1, 2, 5)
    alone = start_filling(**{**options, "runs": runs[:1]})
    assert alone != first and alone.funnel["known"] == 3
    assert stages.advance_filling(alone).state == "filled", "people know its pairs already"
    assert Item.objects.count() == 5


def test_one_can_fill_with_what_there_is_and_again_later(books, runs, alice):
    options = {"collection": books, "runs": runs, "depth": 3, "policy": "people"}
    early = start_filling(**options)
    judge_all(alice, most=2)
    assert stages.finish_filling(early).counts["judged"] == 5
    assert Item.objects.filter(state="open").count() == 3, "people go on"
    judge_all(alice)
    late = start_filling(**options)
    assert late != early and stages.advance_filling(late).after.counts["judged"] == 8


def test_a_cancelled_filling_takes_back_what_nobody_has_taken_up(books, runs, alice):
    begun = start_filling(collection=books, runs=runs, depth=3, policy="people")
    assignment.in_transaction(lambda db: submitting.claim(db, AnnotatorContext.of(alice)))
    stages.cancel_filling(begun)
    assert sorted(Item.objects.values_list("state", flat=True)) == ["open"] + ["withdrawn"] * 4
    with pytest.raises(BadInput, match="has already ended"):
        stages.cancel_filling(begun)
    begun.refresh_from_db()
    with pytest.raises(BadInput, match="cancelled"):
        stages.finish_filling(begun)
    again = start_filling(collection=books, runs=runs, depth=3, policy="people")
    assert again != begun and Item.objects.filter(state="open").count() == 5
    assert Item.objects.filter(seq=1).count() == 4


def test_a_pair_that_waits_for_people_already_is_not_asked_about_twice(books, runs):
    pair = make_pair(books, books.query_set.get(external_id="q1"), books.document_set.get(external_id="c"))
    make_item(pair, "disagreement")
    make_item(pair, "check", state="standing")
    start_filling(collection=books, runs=runs, depth=3, policy="people")
    assert Item.objects.filter(reason="hole").count() == 4


def judged(begun: Filling, outcomes: dict[tuple[str, str], dict[str, object]]) -> None:
    """What judges would leave of each pair of the filling's campaign."""
    campaign = Campaign.objects.get(pk=begun.campaign)
    for work in Work.objects.filter(campaign=campaign).select_related("pair__query", "pair__document"):
        values = outcomes.get((work.pair.query.external_id, work.pair.document.external_id), {})
        Work.objects.filter(pk=work.pk).update(**values)
        if values.get("state") == "labelled":
            Label.objects.create(pair=work.pair, grade=values["label"], origin=campaign.policy)
        elif values.get("state") == "escalated":
            make_item(work.pair, values["reason"], campaign=campaign.pk)


LABELLED = {"state": "labelled", "label": 1, "agreed_in_round": 1}


def test_judges_label_people_settle_and_the_funnel_counts_every_step(books, runs, alice):
    begun = start_filling(collection=books, runs=runs, depth=3, policy="debate+ensemble", panel="offline")
    campaign = Campaign.objects.get(pk=begun.campaign)
    assert (begun.state, campaign.scope) == ("judging", f"filling {begun.pk}")
    assert sorted(Work.objects.values_list("pair", flat=True)) == sorted(begun.pairs), "exactly these pairs"
    assert compute_funnel(begun).pending == 5
    outcomes = {
        ("q1", "c"): LABELLED,
        ("q1", "d"): {"state": "labelled", "label": 0, "agreed_in_round": 2},
        ("q2", "a"): {"state": "failed", "reason": "error"},
        ("q2", "c"): {"state": "escalated", "reason": "conflict", "agreed_in_round": 2},
        ("q2", "d"): {"state": "escalated", "reason": "disagreement"},
    }
    judged(begun, outcomes)
    Campaign.objects.update(state="finished")
    assert stages.advance_filling(begun).state == "people"
    funnel = compute_funnel(begun)
    assert [(one["round"], one["agreed"], one["open"]) for one in funnel.rounds] == [(1, 1, 4), (2, 2, 2)]
    assert (funnel.labelled, funnel.to_people, funnel.people_open, funnel.failed, funnel.pending) == (2, 2, 2, 1, 0)
    assert funnel.asked == funnel.labelled + funnel.to_people + funnel.failed + funnel.pending
    judge_all(alice)
    funnel = compute_funnel(begun)
    assert (funnel.people_open, funnel.people_settled, funnel.settled, funnel.relevant) == (0, 2, 4, 2)
    assert stages.advance_filling(begun).state == "people", "a pair failed, so it does not end by itself"
    after = stages.finish_filling(begun)
    assert after.counts["origins"] == {"debate+ensemble": 2, "original": 3, "people": 2}
    assert "a" not in reading.load_named(after)["q2"]


def test_judges_take_the_pairs_in_the_order_in_which_they_were_sent(books, runs, monkeypatch):
    documents = {one.external_id: one.pk for one in Document.objects.all()}
    queries = {one.external_id: one.pk for one in Query.objects.all()}
    order = [(queries[query], documents[name]) for query, name in (("q2", "d"), ("q1", "c"), ("q2", "a"), ("q1", "d"))]
    monkeypatch.setattr(services, "informative_pairs", lambda *about: order)
    begun = start_filling(collection=books, runs=runs, depth=3, policy="single", panel="offline", first=4)
    assert begun.pairs != sorted(begun.pairs), "the ids of the pairs have another order"
    assert list(Work.objects.order_by("pk").values_list("pair__query_id", "pair__document_id")) == order
    again = {"configuration": build_configuration(panel="offline", policy="ensemble"), "scope": "s", "limit": 2}
    start_campaign(collection=books, pairs=[*begun.pairs, begun.pairs[0]], **again)
    late = Work.objects.filter(campaign__scope="s").order_by("pk").values_list("pair", flat=True)
    assert list(late) == begun.pairs[:2], "a limit keeps the first"


def test_more_runs_ask_only_about_what_is_new(books, runs):
    options = {"collection": books, "depth": 3, "policy": "debate+ensemble", "panel": "offline"}
    first = start_filling(runs=runs[:1], **options)
    assert Work.objects.count() == 3
    judged(first, dict.fromkeys([("q1", "c"), ("q2", "d"), ("q2", "a")], LABELLED))
    Campaign.objects.update(state="finished")
    assert stages.advance_filling(first).state == "filled"
    funnel = compute_funnel(start_filling(runs=runs, **options))
    assert Work.objects.count() == 5 and Campaign.objects.count() == 2
    assert (funnel.asked, funnel.labelled, funnel.pending) == (5, 3, 2), "what is known from the first one counts"
    assert start_filling(runs=runs[:1], **options) == first, "all is settled, nothing changed"


def test_an_ordinary_campaign_of_the_same_judges_is_another_one(books, runs):

    make_pair(books, make_query(books, external_id="q3"), make_document(books, external_id="f"))
    wanted = build_configuration(panel="offline")
    begun = start_filling(collection=books, runs=runs, depth=3, panel="offline")
    judged(begun, {("q1", "c"): LABELLED})
    assert pairs_to_judge(books, wanted, limit=None) == 5, "six candidates, one of them judged"
    started = start_campaign(collection=books, configuration=wanted)
    assert started.campaign is not None and started.campaign.pk != begun.campaign
    assert started.campaign.scope == "" and started.added == 5
    with pytest.raises(ValueError, match="scope"):
        start_campaign(collection=books, configuration=wanted, pairs=begun.pairs)


def test_the_estimate_is_of_the_pairs_that_are_left(books, runs):
    """Offline: two debaters for one to two rounds, five votes: five pairs make at most 5 x (4 + 5) = 45 calls."""
    before = versions.original_version(books)
    options = FillingOptions(runs=["one", "two"], depth=3, policy="debate+ensemble", panel="offline")
    told = planning.estimate_cost(books, runs, before, options)
    assert told is not None and told.calls.upper == 45 and told.free
    assert planning.estimate_cost(books, runs, before, FillingOptions(runs=["one"], policy="people")) is None
    begun = start_filling(collection=books, runs=runs, depth=3, panel="offline")
    judged(begun, dict.fromkeys([("q1", "c"), ("q2", "d")], LABELLED))
    left = planning.estimate_cost(books, runs, before, options)
    assert left is not None and left.calls.upper == 27


def test_a_large_one_is_prepared_by_a_worker(books, runs, alice, monkeypatch):
    monkeypatch.setattr(services, "AT_ONCE", 4)
    options = {"collection": books, "runs": runs, "depth": 3, "policy": "people"}
    waiting = start_filling(**options)
    assert (waiting.state, waiting.pairs, Item.objects.count()) == ("preparing", [], 0)
    assert Funnel.of(waiting).candidates == stages.current_funnel(waiting).pending == 5
    assert start_filling(**options) == waiting, "the same again waits for the same"
    advance_due()
    waiting.refresh_from_db()
    assert (waiting.state, len(waiting.pairs), Item.objects.count()) == ("people", 5, 5)
    advance_due()
    assert len(judge_all(alice)) == Item.objects.count() == 5
    Filling.objects.update(looked_at=None)
    advance_due()
    waiting.refresh_from_db()
    assert waiting.state == "filled", "it ends by itself"


def test_a_filling_that_the_budget_stopped_goes_on_with_more(books, runs):
    options = {"collection": books, "runs": runs, "depth": 3, "panel": "offline"}
    begun = start_filling(**options, max_calls=8)
    Campaign.objects.update(state="budget")
    stopped = stages.advance_filling(begun)
    assert stopped.state == "judging" and compute_funnel(stopped).pending == 5
    assert start_filling(**options, max_calls=100) == begun
    campaign = Campaign.objects.get()
    assert (campaign.pk, campaign.state, campaign.max_calls) == (begun.campaign, "running", 100)


def test_what_cannot_be_prepared_any_more_is_cancelled_and_says_why(books, runs, monkeypatch):
    monkeypatch.setattr(services, "AT_ONCE", 4)
    waiting = start_filling(collection=books, runs=runs, depth=3, panel="offline")
    Run.objects.filter(pk=runs[0].pk).update(is_deleted=True)
    assert prepare_filling(waiting.pk) and not prepare_filling(waiting.pk)
    waiting.refresh_from_db()
    assert waiting.state == "cancelled" and "no run one" in waiting.error


@pytest.mark.parametrize(("step", "ends"), [("pairs_of", "people"), ("advance_filling", "filled")])
def test_what_breaks_is_said_tried_again_and_holds_up_no_other(books, runs, alice, monkeypatch, step, ends):
    """While the first one is prepared, and while it is looked at: the other goes on."""
    monkeypatch.setattr(services, "AT_ONCE", 0 if step == "pairs_of" else 1000)
    options = {"collection": books, "runs": runs, "policy": "people"}
    broken, sound = start_filling(**options, depth=2), start_filling(**options, depth=3)
    judge_all(alice)
    works = getattr(services, step)

    def breaks_once(*given: Any) -> Any:
        monkeypatch.setattr(services, step, works)
        raise OSError("no room")

    monkeypatch.setattr(services, step, breaks_once)
    with pytest.raises(ExceptionGroup) as group:
        advance_due()
    assert [str(error) for error in group.value.exceptions] == ["no room"]
    broken.refresh_from_db()
    sound.refresh_from_db()
    assert (broken.state != ends, sound.state) == (True, ends)
    assert broken.error.endswith("no room") or step != "pairs_of"
    Filling.objects.update(looked_at=None)
    advance_due()
    broken.refresh_from_db()
    assert (broken.state, broken.error) == (ends, "")


def test_what_leaves_nothing_to_send_is_refused_by_its_option(books, runs):
    """The order of one run is settled; texts that are not current any more are in no pool."""
    options = {"collection": books, "depth": 3, "policy": "people"}
    with pytest.raises(BadOption) as refused:
        start_filling(runs=runs[:1], first=5, **options)
    assert refused.value.problems[0][0] == "first"
    Document.objects.filter(collection=books).update(is_current=False)
    with pytest.raises(BadOption, match="one, two") as refused:
        start_filling(runs=runs, **options)
    assert refused.value.problems[0][0] == "runs" and not Filling.objects.exists()


def test_pairs_that_the_filter_dropped_are_counted_apart(books, runs):
    names = [
        JudgeVersion.objects.create(name=name, model=name, provider="openai-compatible", base_url="http://127.0.0.1:1")
        for name in ("gpt-x", "llama-x", "qwen-x")
    ]
    begun = start_filling(collection=books, runs=runs, depth=3, panel="offline", filter=[judge.name for judge in names])
    prompt = PromptVersion.objects.create(name="vote", sha256="0" * 64, text="")
    dropped, kept = Work.objects.order_by("pk")[:2]
    for work, roles in ((dropped, ["filter"]), (kept, ["filter", "for", "vote"])):
        for role in roles:
            Attempt.objects.create(
                campaign=work.campaign, pair=work.pair, judge=names[0], prompt=prompt, role=role, outcome="labelled",
                counts=True, verdict=0, cache_key="", started_at=timezone.now(),
            )  # fmt: skip
        Work.objects.filter(pk=work.pk).update(state="labelled", label=0, agreed_in_round=1 if role == "vote" else None)
        Label.objects.create(pair=work.pair, grade=0, origin="debate+ensemble")
    funnel = compute_funnel(begun)
    assert (funnel.asked, funnel.filtered, funnel.after_filter, funnel.labelled) == (5, 1, 4, 2)
    assert [(one["agreed"], one["open"]) for one in funnel.rounds] == [(1, 3), (0, 3)]


def test_the_pairs_that_could_settle_the_order_come_to_people_first_and_in_this_order(books, runs, alice):
    before = versions.original_version(books)
    later = make_pair(books, make_query(books, external_id="later"), make_document(books, external_id="later"))
    make_item(later, "disagreement", priority=-1.0)
    wanted = informative_pairs(books, runs, before, 3)
    sent = start_filling(collection=books, runs=runs, qrels=before.number, depth=3, first=3, policy="people")
    assert (len(sent.pairs), sent.depth, sent.state) == (3, 3, "people")
    counts = {name: sent.funnel[name] for name in ("pool", "judged", "left_out", "asked")}
    assert counts == {"pool": 8, "judged": 3, "left_out": 2, "asked": 3}, "the pool is the sum of its parts"
    steps = {step: (count, remark) for step, count, remark in filling_page(sent)[0]["steps"]}
    assert steps["left out"] == (2, "not among the most informative pairs")
    Collection.objects.filter(pk=books.pk).update(order="random")
    reprioritise_tasks(Collection.objects.get(pk=books.pk))
    lent = judge_all(alice)
    queries = dict(books.query_set.values_list("pk", "external_id"))
    documents = dict(books.document_set.values_list("pk", "external_id"))
    assert lent[:3] == [(queries[query], documents[document]) for query, document in wanted[:3]]
    assert lent[3] == ("later", "later")
    assert stages.advance_filling(sent).after.counts["judged"] == 6
