"""Attention checks, batches, repeats, the qualification test, consent (DREAM F.2)."""

import re
from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Assignment, AuditEntry, Membership, Role
from annotation.models.quality_control import ArgumentsRequest, Batch, Consent, GoldArguments, JudgmentExclusion
from annotation.work.judging import submitting
from annotation.work.quality_control import attention_checks, batches, consent, exclusion, matching, qualification
from annotation.work.quality_control.matching import DebateForm
from annotation.work.quality_control.onboarding import PRACTICE_COUNT
from annotation.work.queue import assignment, check_scheduling
from annotation.work.queue.annotators import SubmittedAnswer
from annotation.work.settings import guidelines
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, Item, Judgment, Label
from judges.models import Attempt, JudgeVersion, Panel
from judges.records import Turn
from tests.called import call
from tests.evidence import make_judge
from tests.factories import make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.judging_scene import debating_campaign, escalate
from tests.queue_scene import claim, desk, signed_in, submit

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def gold(pair, grade: int) -> None:
    reference = Assessor.objects.get_or_create(collection=pair.collection, kind="reference", name="gold")[0]
    Judgment.objects.create(pair=pair, assessor=reference, step="import", grade=grade)


def make_scene(collection, *, ordinary: int, known: int, grade: int = 1) -> None:
    """Escalated pairs, and gold pairs about which the same judges debated."""
    campaign = debating_campaign(collection)
    for _ in range(ordinary):
        escalate(campaign, make_pair(collection))
    for _ in range(known):
        pair = make_pair(collection)
        escalate(campaign, pair).delete()
        gold(pair, grade)


def test_each_of_a_thousand_batches_of_twenty_has_exactly_two_checks_at_seeded_places():
    def kinds(annotator, repeats=0.0):
        return [
            check_scheduling.schedule_item(seed=1, annotator=annotator, number=n, checks=0.1, repeats=repeats)
            for n in range(20_000)
        ]

    alice, bob = kinds(7), kinds(8)
    assert alice == kinds(7) and alice != bob
    for walk in (alice, bob, kinds(9, repeats=0.05)):
        assert {walk[begin : begin + 20].count("check") for begin in range(0, 20_000, 20)} == {2}
    places = Counter(n % 20 for n, kind in enumerate(alice) if kind == "check")
    assert set(places) == set(range(20)) and max(places.values()) < 140, "100 each, give or take 4 deviations of 9.5"
    assert abs(kinds(7, repeats=0.05).count("repeat") / 20_000 - 0.05) < 0.006
    # Other batches have their share too, and one at least.
    for size, share, checks in ((5, 0.1, 1), (9, 0.01, 1), (20, 0, 0), (30, 0.5, 15)):
        options = {"seed": 4, "annotator": 1, "checks": share, "repeats": 0, "size": size, "closed_to": 3}
        for begin in range(3, 3 + 40 * size, size):
            walk = [check_scheduling.schedule_item(number=n, **options) for n in range(begin, begin + size)]
            assert walk.count("check") == checks


def test_a_batch_without_a_check_is_not_checked_and_not_accepted():
    collection = make_collection("books", checks=0.1, batch=10)
    make_scene(collection, ordinary=20, known=1)
    attention_checks.make_checks(collection=collection, count=1, seed=1, by=None)
    alice = make_member(collection, "alice")
    lease = claim(alice)
    for _ in range(20):
        lease = submit(alice, lease, 1)
    assert [one.outcome for one in Batch.objects.order_by("number")] == ["accepted", "unchecked"]
    client = signed_in(make_member(collection, "charlie", Role.ADMIN))
    page = client.get(f"/c/books/people/{alice.pk}/").text
    assert "not checked" in page and "accepted, no check" not in page
    assert client.get("/c/books/quality-control/").context["batches"]["unchecked"] == 1


def test_whole_queries_make_up_for_the_places_that_a_page_passes_over():
    collection = make_collection(checks=0.1)
    campaign = debating_campaign(collection)
    for _ in range(12):
        query = make_query(collection)
        for _ in range(5):
            escalate(campaign, make_pair(collection, query))
    for _ in range(10):
        pair = make_pair(collection)
        escalate(campaign, pair).delete()
        gold(pair, 1)
    attention_checks.make_checks(collection=collection, count=10, seed=1, by=None)
    alice = make_member(collection, "alice")
    for _ in range(30):
        lease = assignment.in_transaction(lambda db: submitting.claim_query(db, desk(alice)))
        if lease is None:
            break
        for held in Assignment.objects.filter(membership=alice, state="open").select_related("item"):
            answer = SubmittedAnswer(held.item_id, held.token, 1, "", 1000)
            assignment.in_transaction(lambda db, answer=answer: assignment.submit_judgment(db, desk(alice), answer))
    lent = Assignment.objects.filter(membership=alice, item__reason="check").count()
    assert lent >= 2 * (60 // 20) - 1, "the places that pages of five pass over would leave two of ten"


# --- arguments -------------------------------------------------------------------------------------------------------
def test_easy_gold_of_both_labels_gets_arguments_comes_in_its_share_and_leaves_no_label():
    collection = make_collection(checks=0.2)
    make_scene(collection, ordinary=20, known=0)
    easy = []
    for number in range(12):
        pair = make_pair(collection)
        gold(pair, number % 2)
        easy.append(pair.pk)
    assert attention_checks.make_checks(collection=collection, count=10, seed=1, by=None) == 10
    made = list(Item.objects.filter(reason="check"))
    labels = Counter(Judgment.objects.get(pair=item.pair_id, assessor__kind="reference").grade for item in made)
    assert set(labels) == {0, 1} and min(labels.values()) >= 3, "both labels"
    ordinary = attention_checks.read_features(collection)[0][0].shape
    for item in made:
        assert item.pair_id in easy and item.shown_as == "disagreement"
        assert matching.shape_of(item.turns) == ordinary, "it looks like what people read"
        assert all(turn["reason"] for turn in item.turns)
        assert {turn["verdict"] for turn in item.turns if turn["side"] == "for"} == {1}
        assert {turn["verdict"] for turn in item.turns if turn["side"] == "against"} == {0}
    alice = make_member(collection, "alice")
    reasons = Counter()
    lease = claim(alice)
    while lease is not None:
        reasons[lease.item.reason] += 1
        lease = submit(alice, lease, answer_right(lease) if lease.item.reason == "check" else 1)
    drawn = [
        check_scheduling.schedule_item(seed=0, annotator=alice.pk, number=n, checks=0.2, repeats=0)
        for n in range(sum(reasons.values()))
    ]
    assert reasons == {"disagreement": 20, "check": drawn.count("check")} and reasons["check"] > 0
    assert Label.objects.count() == 20
    assert not Item.objects.filter(reason="check").exclude(state="standing").exists()


def argued(pair, rounds: int, couples: int = 1, by: str = "a model") -> GoldArguments:
    """Arguments of models about a gold pair."""
    said = {
        seat: Turn(int(seat.side == "for"), f"{by}: {seat}")
        for seat in attention_checks.list_agents(DebateForm(rounds, couples))
    }
    turns = [turn for number in range(1, rounds + 1) for turn in attention_checks.stored_turns(said, number)]
    return GoldArguments.objects.create(pair=pair, couples=couples, rounds=rounds, turns=turns, written_by=by)


@pytest.mark.parametrize("provider", ["openai", "offline"])
def test_a_check_shows_the_words_of_those_who_wrote_the_debates_around_it(provider):
    """Ten easy pairs, half of them argued about by models: beside models' debates only these become checks."""
    collection = make_collection(checks=0.2)
    make_scene(collection, ordinary=8, known=0)
    JudgeVersion.objects.update(provider=provider)
    easy = [make_pair(collection) for _ in range(10)]
    for number, pair in enumerate(easy):
        gold(pair, number % 2)
        if number < 5:
            argued(pair, 3)
    assert attention_checks.arguments_of_models(easy[0], DebateForm(4)) is None, "too few rounds"
    assert attention_checks.make_checks(collection=collection, count=4, seed=1, by=None) == 4
    for item in Item.objects.filter(reason="check"):
        assert matching.shape_of(item.turns) == "2 rounds, 4 turns, 0-1"
        assert {turn["reason"].startswith("a model") for turn in item.turns} == {provider == "openai"}


def test_the_page_counts_gold_by_whose_arguments_it_has_and_says_what_to_do():
    collection = make_collection("books", checks=0.2)
    make_scene(collection, ordinary=2, known=0)
    for number in range(5):
        gold(pair := make_pair(collection), number % 2)
        if number < 2:
            argued(pair, 2)
    client = signed_in(make_member(collection, "charlie", Role.ADMIN))
    JudgeVersion.objects.update(provider="offline")
    answer = client.get("/c/books/quality-control/")
    page, forecast = answer.text, answer.context["arguments"]
    assert (forecast.by_models, forecast.offline, forecast.writers) == (0, 5, "")
    assert "/quality-control/checks/arguments/" not in page
    assert client.post("/c/books/quality-control/checks/arguments/").status_code == 422
    # Where people read debates of the offline pair nobody is asked to pay, whatever the default panel has.
    Panel.objects.update(is_default=False)
    Panel.objects.create(name="models", debate=[make_judge(name).name for name in "xy"], ensemble=[], is_default=True)
    assert "/quality-control/checks/arguments/" not in client.get("/c/books/quality-control/").text
    JudgeVersion.objects.update(provider="openai")
    answer = client.get("/c/books/quality-control/")
    assert (answer.context["arguments"].by_models, answer.context["arguments"].offline) == (2, 3)
    assert "about 12 calls" in answer.text and "/quality-control/checks/arguments/" in answer.text
    assert not ArgumentsRequest.objects.exists(), "the page alone asks nobody"
    assert client.post("/c/books/quality-control/checks/arguments/").status_code == 302
    asked = ArgumentsRequest.objects.get()
    assert asked.gold_set is None and asked.ended_at is None
    assert AuditEntry.objects.filter(act="arguments.asked", person__username="charlie").count() == 1
    page = " ".join(client.get("/c/books/quality-control/").text.split())
    assert "Requested" in page and 'disabled aria-describedby="writing"' in page
    assert client.post("/c/books/quality-control/checks/arguments/").status_code == 422, "it is asked for already"


def escalate_four(campaign, pair) -> None:
    """Two more agents said as much, each in its own words."""
    escalate(campaign, pair)
    for turn in Attempt.objects.filter(pair=pair):
        turn.pk, turn.agent_pair, turn.reason = None, 1, f"Another says: {turn.reason}"
        turn.save()


def test_easy_gold_becomes_checks_beside_debates_of_four_agents():
    collection = make_collection(checks=0.2)
    campaign = debating_campaign(collection)
    for _ in range(6):
        escalate_four(campaign, make_pair(collection))
    for number in range(20):
        gold(make_pair(collection), number % 2)
    # The offline agents have each its own statement even where there is nothing to say.
    empty = make_pair(collection, make_query(collection, "?"), make_document(collection, "."))
    turns = attention_checks.offline_turns(empty, DebateForm(3, couples=2))
    assert all(len({turn["reason"] for turn in turns if turn["round"] == number}) == 4 for number in (1, 2, 3))
    shape = "2 rounds, 8 turns, 0-0-1-1"
    assert matching.stance_of(shape) == DebateForm(2, couples=2)
    for other in ("", "2 rounds, 4 turns, 1-0", "2 rounds, 8 turns, 0-1-0-1", "2 rounds, 6 turns, 0-0-1"):
        assert matching.stance_of(other) is None
    assert attention_checks.read_features(collection)[0][0].shape == shape
    assert attention_checks.make_checks(collection=collection, count=6, seed=1, by=None) == 6
    for item in Item.objects.filter(reason="check"):
        assert matching.shape_of(item.turns) == shape
        said = {(turn["round"], turn["couple"], turn["side"], turn["verdict"]) for turn in item.turns}
        sides = (("for", 1), ("against", 0))
        assert said == {(number, couple, *side) for number in (1, 2) for couple in (0, 1) for side in sides}
        for number in (1, 2):
            assert len({turn["reason"] for turn in item.turns if turn["round"] == number}) == 4, "each its own"


def test_dreams_own_form_is_a_relevant_pair_with_what_each_agent_said_about_something_else():
    collection = make_collection("books", checks=0.2)
    campaign = debating_campaign(collection)
    for _ in range(4):
        escalate_four(campaign, make_pair(collection))
    for number in range(4):
        gold(make_pair(collection), number % 2)
    client = signed_in(make_member(collection, "charlie", Role.ADMIN))
    sent = client.post("/c/books/quality-control/checks/", {"checks-size": 1, "checks-seed": 1, "checks-form": "dream"})
    assert sent.status_code == 302, sent.text[:500]
    document = call("attention_checks", "books", "--count=1", "--form=dream", "--json").json
    assert (document["form"], document["made"], document["standing"], document["gold"]) == ("dream", 1, 2, 2)
    for item in Item.objects.filter(reason="check"):
        assert Judgment.objects.get(pair=item.pair_id, assessor__kind="reference").grade == 1
        assert matching.shape_of(item.turns) == "2 rounds, 8 turns, 0-0-1-1"
        assert all(quote["start"] is None for turn in item.turns for quote in turn["quotes"])
        reasons = {turn["reason"] for turn in item.turns}
        elsewhere = Attempt.objects.exclude(pair=item.pair_id).values_list("reason", flat=True)
        assert len(reasons) == 8 and reasons <= set(elsewhere), "of a debate about another query"


def test_the_command_counts_says_what_arguments_cost_and_asks_only_when_told():
    collection = make_collection("books", checks=0.2)
    make_scene(collection, ordinary=2, known=0)
    JudgeVersion.objects.update(provider="openai")
    gold(make_pair(collection), 1)

    command = ("attention_checks", "books", "--json")
    estimate = call(*command, "--estimate")
    assert estimate.json["asked"] is False and "estimate: about 4 calls" in estimate.err
    assert (estimate.json["gold_by_models"], estimate.json["gold_offline"]) == (0, 1)
    assert not ArgumentsRequest.objects.exists()
    assert call(*command, "--write-arguments").json["asked"] is True and ArgumentsRequest.objects.count() == 1
    assert call(*command, "--count=1").json["made"] == 1
    assert call(*command, "--withdraw").json["withdrawn"] == 1
    assert call(*command, "--count=0").code == 2


def test_a_check_or_a_repeat_costs_no_statement_more_than_any_pair(monkeypatch):
    collection = make_collection("books", checks=0.2, repeats=0.4, batch=1000)
    make_scene(collection, ordinary=40, known=12)
    attention_checks.make_checks(collection=collection, count=12, seed=1, by=None)
    alice = make_member(collection, "alice")
    client = signed_in(alice)
    client.post("/c/books/judge/next/", headers=HTMX)
    # The queue's statements run on the driver's own cursor, which Django does not log.
    asked: list[str] = []
    plain = assignment.fetch_dicts

    def counting(db, statement, **values):
        asked.append(statement)
        return plain(db, statement, **values)

    monkeypatch.setattr(assignment, "fetch_dicts", counting)
    costs: dict[str, set[int]] = {"disagreement": set(), "check": set(), "repeat": set()}
    for _ in range(40):
        lease = Assignment.objects.select_related("item").get(membership=alice, state="open")
        answer = {"item": lease.item_id, "token": lease.token, "grade": 1}
        asked.clear()
        with CaptureQueriesContext(connection) as seen:
            client.post("/c/books/judge/submit/", answer, headers=HTMX)
        own = [query for query in seen if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]
        came = Assignment.objects.select_related("item").filter(membership=alice, state="open").first()
        if came is None:
            break
        costs[came.item.reason].add(len(asked) + len(own))
    assert costs["check"] and costs["repeat"]
    assert min(costs["check"]) >= 3
    assert max(costs["check"] | costs["repeat"]) <= max(costs["disagreement"]), costs


def test_what_cannot_be_made_is_refused_and_has_a_disabled_button_with_the_reason():
    collection = make_collection("books")
    client = signed_in(make_member(collection, "charlie", Role.ADMIN))

    def disabled(button: str) -> bool:
        page = " ".join(client.get("/c/books/quality-control/").text.split())
        found = re.search(rf'<button class="button[^"]*"( disabled aria-describedby="([^"]+)")? ?> ?{button}', page)
        assert found and (not found[2] or f'id="{found[2]}"' in page)
        return bool(found[1])

    def make(form: str = "own") -> int:
        return attention_checks.make_checks(collection=collection, count=3, seed=1, by=None, form=form)

    assert disabled("Create checks") and disabled("Create test")
    with pytest.raises(BadInput, match="is waiting"):
        make()
    make_scene(collection, ordinary=1, known=0)
    with pytest.raises(BadInput, match="No gold pairs"):
        make()
    gold(make_pair(collection), 0)
    with pytest.raises(BadInput, match="DREAM"):
        make("dream")
    assert make() == 1, "arguments are written for it"
    Item.objects.filter(reason="check").delete()
    for _ in range(4):
        gold(make_pair(collection), 1)
    assert not disabled("Create checks") and disabled("Create test")
    gold(make_pair(collection), 0)
    assert not disabled("Create test")
    Item.objects.all().delete()
    assert disabled("Create checks")


def judge_a_batch(collection, member: Membership, grade: int) -> None:
    """Ten judgments, two of them on checks whose right answer is 1."""
    make_scene(collection, ordinary=12, known=3)
    attention_checks.make_checks(collection=collection, count=3, seed=1, by=None)
    shares = {"annotator": member.pk, "checks": 0.2, "repeats": 0, "size": 10}
    for seed in range(1000):
        if [check_scheduling.schedule_item(seed=seed, number=n, **shares) for n in range(10)].count("check") == 2:
            break
    Collection.objects.filter(pk=collection.pk).update(seed=seed)
    lease = claim(member)
    for _ in range(10):
        lease = submit(member, lease, grade)


@pytest.mark.parametrize(("grade", "missed"), [(1, 0), (0, 2)])
def test_a_batch_whose_checks_are_missed_goes_back_to_the_queue_and_one_whose_checks_are_passed_stays(grade, missed):
    collection = make_collection(checks=0.2, batch=10)
    alice, bob = make_member(collection, "alice"), make_member(collection, "bob")
    judge_a_batch(collection, alice, grade)
    done = Batch.objects.get(membership=alice)
    assert (done.number, done.size, done.checks, done.missed) == (0, 10, 2, missed)
    judged = Item.objects.filter(reason="disagreement", assignments__membership=alice, assignments__number__lt=10)
    assert Counter(judged.values_list("state", "taken")) == {("open", 0) if missed else ("settled", 1): 8}
    assert Label.objects.count() == (0 if missed else 8)
    if missed:
        assert claim(bob).item_id in judged.values_list("pk", flat=True) or claim(bob).item.reason == "check"
        mine = Assignment.objects.filter(membership=alice, state="aside")
        assert set(mine.values_list("item__reason", flat=True)) == {"disagreement"}
    assert batches.close(alice.pk) == []


def test_a_returned_batch_is_announced_to_its_author_until_they_have_read_of_it_or_it_is_accepted_after_all():
    collection = make_collection("books", checks=0.2, batch=10)
    alice = make_member(collection, "alice")
    client = signed_in(alice)
    announced = "batch of your judgments"
    assert announced not in client.get("/c/books/judge/").text
    judge_a_batch(collection, alice, 0)
    page = client.get("/c/books/judge/returned/").text
    assert "8 judgments" in page and "check" not in page.split("<main")[1].split("</main>")[0].lower()
    assert announced in client.get("/c/books/judge/").text, "reading the page alone changes nothing"
    assert client.post("/c/books/judge/returned/").status_code == 302
    assert announced not in client.get("/c/books/judge/").text
    assert "8 judgments" in client.get("/c/books/judge/returned/").text
    Membership.objects.filter(pk=alice.pk).update(returned=1)
    exclusion.reinstate_judgments(act=JudgmentExclusion.objects.get(), by=None)
    assert announced not in client.get("/c/books/judge/").text


def test_a_repeat_comes_after_twenty_others_looks_as_before_and_leaves_no_label():
    collection = make_collection(checks=0, repeats=0.3)
    make_scene(collection, ordinary=60, known=0)
    alice = make_member(collection, "alice")
    lease, seen, repeats = claim(alice), [], []
    while lease is not None:
        if lease.item.reason == "repeat":
            repeats.append((len(seen), lease.item))
        seen.append(lease.item.pair_id)
        lease = submit(alice, lease, 1)
    assert len(repeats) >= 3
    for at, item in repeats:
        assert seen[: at - 19].count(item.pair_id) == 1
        assert (item.shown_as, item.arm) == ("disagreement", "")
    assert len({item.pair_id for _, item in repeats}) == len(repeats)
    assert Label.objects.count() == 60


# --- the qualification test ------------------------------------------------------------------------------------------
@pytest.fixture
def tested():
    collection = make_collection("books", checks=0)
    make_scene(collection, ordinary=3, known=8)
    for _ in range(7):
        gold(make_pair(collection), 0)
    qualification.make_test(collection=collection, size=10, seed=4, by=None)
    return collection


def answer_right(lease: Assignment, wrong: bool = False) -> int:
    known = Judgment.objects.get(pair=lease.item.pair_id, assessor__kind="reference").grade
    return 1 - known if wrong else known


def take_test(member: Membership, *, wrong: int) -> None:
    """Practice, one at a time; then the test with so many wrong answers."""
    for _ in range(PRACTICE_COUNT):
        lease = claim(member)
        assert lease.item.priority < 0
        assert submit(member, lease, 0) is None
    lease = claim(member)
    for number in range(10):
        assert (lease.item.reason, lease.item.priority) == ("qualification", 0)
        lease = submit(member, lease, answer_right(lease, wrong=number < wrong))
    assert lease is None


@pytest.mark.parametrize(("wrong", "passes"), [(1, True), (2, False)])
def test_the_queue_opens_at_the_pass_mark_of_ninety_percent(tested, wrong, passes):
    alice = make_member(tested, "alice")
    take_test(alice, wrong=wrong)
    alice.refresh_from_db()
    assert (alice.qualified_at is not None, alice.failed_at is None) == (passes, passes)
    assert not Assignment.objects.filter(membership=alice).exclude(item__reason="qualification").exists()
    lease = claim(alice)
    assert (lease and lease.item.reason) == ("disagreement" if passes else None) and not Label.objects.exists()
    if not passes:  # until another test is passed
        qualification.make_test(collection=tested, size=10, seed=5, by=None)
        qualification.allow_retake(membership=alice, by=None)
        take_test(alice, wrong=0)
        assert claim(alice).item.reason == "disagreement"


# --- consent ---------------------------------------------------------------------------------------------------------
def test_nobody_is_lent_a_pair_before_they_agree_and_a_new_text_asks_again():
    collection = make_collection("books")
    make_item(make_pair(collection))
    alice = make_member(collection, "alice")
    author = alice.user
    consent.write(collection=collection, text="Answers are published.", by=author)
    client = signed_in(alice)
    page = client.get("/c/books/judge/").text
    assert "Answers are published." in page and "I agree" in page
    client.post("/c/books/judge/next/")
    assert not Assignment.objects.exists()
    assert client.post("/c/books/judge/consent/", {"version": 7}).status_code == 409
    assert client.post("/c/books/judge/consent/", {"version": 1}).status_code == 303
    assert Consent.objects.get().version == 1
    client.post("/c/books/judge/next/")
    held = Assignment.objects.get()

    consent.write(collection=collection, text="Another text.", by=author)
    client.post("/c/books/judge/submit/", {"item": held.item_id, "token": held.token, "grade": 1})
    assert Judgment.objects.get().grade == 1, "what was on the desk still counts"
    assert "Another text." in client.get("/c/books/judge/").text


def test_changed_guidelines_are_announced_until_they_are_acknowledged():
    collection = make_collection("books")
    make_item(make_pair(collection))
    alice = make_member(collection, "alice")
    client = signed_in(alice)
    client.post("/c/books/judge/next/")
    assert "guidelines have changed" not in client.get("/c/books/judge/").text
    guidelines.write(collection=collection, text="Only what answers.\n", author=alice.user)
    for _ in range(2):
        assert "guidelines have changed" in client.get("/c/books/judge/").text
    page = client.get("/c/books/judge/guidelines/").text
    assert "<ins>" in page and "Only what answers." in page and "<del>" in page
    client.post("/c/books/judge/guidelines/", {"version": 9})
    alice.refresh_from_db()
    assert alice.guideline_read == 1
    assert "guidelines have changed" not in client.get("/c/books/judge/").text
