"""The self-check of judges: known ordering and repeatability, counted by hand and asked of scripted servers."""

from dataclasses import asdict, replace

import pytest
from django.db import Error, transaction
from django.utils import timezone

from annotation.models import Role
from annotation.models.self_checks import SelfCheck
from annotation.quality.panels import self_checks
from annotation.tasks import self_check as run_self_check
from corpus.models import Collection
from corpus.rubric import SUFFICIENCY
from jobs import background, leases
from jobs.models import BackgroundJob
from judges.models import Attempt, Panel
from judges.probes import self_check as asking
from judges.probes.known_orders import Findings, OrderedCouples, Probe, built_in, count_findings
from judges.records import Inputs
from tests.called import call
from tests.engine_parts import make_judge
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels

TEXT = Inputs("?", (), "", "")
PROBE = Probe("p", ((2, TEXT), (1, TEXT), (0, TEXT)))
OWN = Probe("q", ((2, TEXT), (0, TEXT)), own=True)
FIRSTS = [probe.documents[0][1].document for probe in built_in(answers=False)]
"""The eight documents that answer."""


# Counted by hand


def test_couples_are_counted_by_how_far_their_levels_are_apart_and_the_first_verdict_counts():
    """Grades 3, 3, 0: the clear couple (3, 0) is right; of the near ones (3, 3) is tied and (3, 0) right."""
    found = count_findings([PROBE], {("p", 0): [3, 3], ("p", 1): [3, 2], ("p", 2): [0, 0]})
    assert found.clear == OrderedCouples(right=1)
    assert found.near == OrderedCouples(right=1, tied=1)
    assert (found.asked, found.answered) == (6, 6)
    assert (found.repeated, found.repeats) == (2, 3), "the second document got 3 and then 2"
    found = count_findings([PROBE, OWN], {("p", 0): [None, 1], ("p", 1): [None, None], ("p", 2): [0, 0]} | own(0, 1))
    assert found.clear == OrderedCouples(right=1) and found.near == OrderedCouples()
    assert found.own == OrderedCouples(reversed=1)
    assert (found.asked, found.answered, found.repeats, found.repeated) == (10, 7, 3, 3)


def own(first, second):
    return {("q", 0): [first, first], ("q", 1): [second, second]}


GOOD = Findings(48, 48, OrderedCouples(8), OrderedCouples(8, 8), OrderedCouples(), 24, 24)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"clear": OrderedCouples(7, 1)}, None),
        ({"clear": OrderedCouples(6, 1, 1)}, "6 of 8 document pairs in the expected order (1 tied, 1 reversed)"),
        ({"clear": OrderedCouples()}, "0 of 0 document pairs in the expected order (0 tied, 0 reversed)"),
        ({"answered": 45}, "3 of 48 questions got no verdict"),
        ({"near": OrderedCouples(8, 5, 3)}, "3 of 16 neighbouring levels reversed"),
        ({"own": OrderedCouples(3, 3, 2)}, None),
        ({"own": OrderedCouples(2, 4, 2)}, "2 of 8 document pairs of the collection reversed"),
        ({"repeated": 21}, "same answer both times on 21 of 24 documents"),
    ],
)
def test_what_keeps_a_judge_from_passing(change, problem):
    found = replace(GOOD, **change)
    assert found.problems == ((problem,) if problem else ())
    assert found.passes is (problem is None)


def test_the_built_in_probes_are_distinct_and_carry_answers_only_where_asked():
    plain, answered = built_in(answers=False), built_in(answers=True)
    texts = [inputs.document for probe in plain for _, inputs in probe.documents]
    assert len(plain) == 8 and len(set(texts)) == 24
    assert {level for probe in plain for level, _ in probe.documents} == {0, 1, 2}
    assert all(not inputs.answers for probe in plain for _, inputs in probe.documents)
    assert all(
        inputs.answers and inputs.relevance is SUFFICIENCY for probe in answered for _, inputs in probe.documents
    )


# Asked of a scripted server


@pytest.fixture
def books() -> Collection:
    """Queries without answers, two pairs of the first with a reference grade."""
    books = make_collection("books", grades=3, relevant_from=2, instruction="As a librarian would.")
    query = make_query(books, "Who wrote it?", answers=[], external_id="q1")
    reference = make_assessor(books, "qrels", "reference")
    for text, grade in (("She wrote it in May.", 3), ("It was printed in Kiel.", 1)):
        make_judgment(make_pair(books, query, make_document(books, text)), reference, grade)
    return books


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)


def knows(*firsts: str) -> list[dict[str, object]]:
    """A model that says yes to these documents and no to all others."""
    return [*({"contains": text, "verdict": "yes"} for text in firsts), {"verdict": "no"}]


def check(*options: str) -> tuple[int, dict]:
    done = call("panel", "books", "--self-check", *options, "--json")
    return done.code, done.json if done.out else {}


@pytest.mark.django_db
def test_a_judge_that_tells_them_apart_passes_and_one_that_says_yes_to_all_does_not(books, model_server: LocalModels):
    model_server.script({"good": knows(*FIRSTS, "She wrote it in May."), "yes": {"verdict": "yes"}})
    make_judge(model_server, "good")
    make_judge(model_server, "yes")
    code, document = check("--candidates", "good,yes")
    good, yes = document["judges"]
    assert code == 3
    assert good["passes"] and good["problems"] == []
    assert good["clear"] == {"right": 8, "tied": 0, "reversed": 0}
    assert good["near"] == {"right": 8, "tied": 8, "reversed": 0}, "yes, no, no: two grades cannot part three levels"
    assert good["own"] == {"right": 1, "tied": 0, "reversed": 0}
    assert (good["asked"], good["answered"], good["calls"]) == (52, 52, 52), "(8 x 3 + 2) x 2"
    assert (good["repeated"], good["repeats"]) == (26, 26) and good["cost"] > 0
    assert not yes["passes"] and yes["clear"] == {"right": 0, "tied": 8, "reversed": 0}
    assert [(row.judge.name, row.passes) for row in SelfCheck.objects.order_by("pk")] == [
        ("good", True),
        ("yes", False),
    ]
    assert not Attempt.objects.exists(), "no campaign and no vote has a part in it"
    sent = [one for one in model_server.requests() if one["model"] == "good"]
    assert len(sent) == 52, "the second time is asked anew, not taken from a cache"
    assert sum("As a librarian would." in one["system"] for one in sent) == 4, "its own definition with its own pairs"


@pytest.mark.django_db
def test_answers_that_change_are_counted(books, model_server: LocalModels):
    """Six of the 26 documents get yes the first time and no the second: 20 of 26 are below nine of ten."""
    flips = [{"contains": text, "verdict": "yes", "times": 1} for text in FIRSTS[:6]]
    model_server.script({"moody": [*flips, *knows(*FIRSTS[6:], "She wrote it in May.")]})
    make_judge(model_server, "moody")
    (moody,) = check("--candidates", "moody")[1]["judges"]
    assert (moody["repeated"], moody["repeats"], moody["passes"]) == (20, 26, False)


@pytest.mark.django_db
def test_a_graded_judge_is_compared_on_its_own_scale(books, model_server: LocalModels):
    """9 for what answers, 4 for the same subject, 0 elsewhere: all couples are right, the near ones too."""
    probes = built_in(answers=False)
    script = [
        {"contains": inputs.document, "score": score}
        for probe in probes
        for score, (_, inputs) in zip((9, 4, 0), probe.documents, strict=True)
    ]
    model_server.script({"ten": [*script, {"contains": "She wrote", "score": 7}, {"score": 2}]})
    make_judge(model_server, "ten", parameters={"scale": "0-10"})
    code, document = check("--candidates", "ten")
    (ten,) = document["judges"]
    assert code == 0 and ten["passes"]
    assert ten["clear"]["right"] == 8 and ten["near"] == {"right": 16, "tied": 0, "reversed": 0}


@pytest.mark.django_db
def test_what_is_no_verdict_is_no_grade_and_a_rate_limit_is_tried_again(books, model_server: LocalModels, settings):
    settings.RETRY_SECONDS = 0.01
    limited = {"fault": "429", "times": 5}
    model_server.script({"good": [limited, *knows(*FIRSTS, "She wrote it in May.")], "mute": {"fault": "garbage"}})
    make_judge(model_server, "good")
    make_judge(model_server, "mute")
    _, document = check("--candidates", "good,mute")
    good, mute = document["judges"]
    assert good["passes"] and good["calls"] == 57
    assert (mute["asked"], mute["answered"], mute["repeats"]) == (52, 0, 0)
    assert mute["problems"][0].startswith("52 of 52 ") and "follow the schema" in mute["error"]


@pytest.mark.django_db
def test_a_key_that_is_refused_ends_the_asking_at_once(books, model_server: LocalModels, monkeypatch):
    model_server.script({"locked": {"fault": "401"}})
    monkeypatch.setenv("LOCKED_KEY", KEY)  # An account of its own: its state in Redis outlives the test.
    make_judge(model_server, "locked", api_key_env="LOCKED_KEY")
    _, document = check("--candidates", "locked")
    (locked,) = document["judges"]
    assert locked["answered"] == 0 and "401" in locked["error"]
    assert len(model_server.requests()) <= asking.AT_ONCE


@pytest.mark.slow
@pytest.mark.django_db
def test_an_account_that_asks_to_wait_for_long_ends_the_asking_at_once(books, model_server: LocalModels, monkeypatch):
    model_server.script({"spent": {"fault": "429", "retry_after": "900"}})
    monkeypatch.setenv("SPENT_KEY", KEY)
    make_judge(model_server, "spent", api_key_env="SPENT_KEY")
    _, document = check("--candidates", "spent")
    (spent,) = document["judges"]
    assert spent["answered"] == 0 and "429" in spent["error"]
    assert len(model_server.requests()) <= asking.AT_ONCE


# Stored and shown


def checked(collection: Collection, judge, passes: bool = True) -> SelfCheck:
    found = GOOD if passes else replace(GOOD, clear=OrderedCouples(2, 6))
    values = {**asdict(found), "problems": list(found.problems), "calls": 0, "cost": 0, "error": ""}
    return SelfCheck.objects.create(collection=collection, judge=judge, passes=passes, findings=values)


@pytest.mark.django_db
def test_the_newest_self_check_of_the_present_version_holds_and_none_is_altered(books, model_server: LocalModels):
    judge = make_judge(model_server, "v1")
    checked(books, judge, passes=False)
    row = checked(books, judge)
    found = self_checks.newest_self_checks(books, ["v1", "v2"])
    assert found["v1"].row == row and found["v2"].summary == "not checked yet"
    assert ": 8 of 8 " in found["v1"].summary and " 24 of 24 " in found["v1"].summary
    judge.is_current = False
    judge.save()
    make_judge(model_server, "v1", version=2)
    assert self_checks.newest_self_checks(books, ["v1"])["v1"].row is None, "a changed judge was not checked"
    with pytest.raises(Error), transaction.atomic():
        SelfCheck.objects.filter(pk=row.pk).update(passes=False)


@pytest.mark.django_db
def test_a_large_campaign_names_the_judges_that_never_passed_before_it_starts(books, client, model_server, monkeypatch):
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    judges = [make_judge(model_server, f"v{n}") for n in range(5)]
    Panel.objects.create(name="paid", debate=["v0", "v1"], ensemble=[judge.name for judge in judges])
    asked = {"panel": "paid", "policy": "ensemble", "rounds": 2}
    for judge in judges[:3]:
        checked(books, judge)
    checked(books, judges[3], passes=False)
    text = client.post("/c/books/campaigns/start/", asked).text
    assert "Start this campaign?" in text and "not checked yet" not in text, "two pairs are no large campaign"
    monkeypatch.setattr("annotation.home.campaigns.estimates.LARGE_CAMPAIGN_PAIRS", 2)
    text = client.post("/c/books/campaigns/start/", asked).text
    assert "/c/books/panel/self-check/?panel=paid" in text
    assert "v4: not checked yet" in text and "v3: failed on" in text and "v1: passed" not in text
    offline = client.post("/c/books/campaigns/start/", {**asked, "panel": "offline"}).text
    assert "self-check" not in offline


@pytest.mark.django_db
def test_an_admin_sees_the_cost_first_and_a_worker_asks_once(
    books, client, model_server: LocalModels, monkeypatch, django_capture_on_commit_callbacks
):
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    model_server.script({"good": knows(*FIRSTS, "She wrote it in May.")})
    judge = make_judge(model_server, "good")
    text = client.get("/c/books/panel/self-check/?judge=good").text
    assert "<strong>52</strong>" in text and "not checked yet" in text and "Start now" in text
    assert not model_server.requests() and not SelfCheck.objects.exists(), "a GET asks nobody"
    address, asked, sent = "/c/books/panel/self-check/", {"judge": "good"}, []
    assert "No worker is running" in client.post(address, asked, follow=True).text
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: ["one"])
    messenger = self_checks.notifications.message_sender()
    monkeypatch.setattr(messenger, "send_task", lambda name, args, **more: sent.append((name, args)))
    with django_capture_on_commit_callbacks(execute=True):
        assert "in the background" in client.post(address, asked, follow=True).text
        again = client.post(address, asked, follow=True).text
    assert "self-check running" in again
    assert sent == [("annotation.self_check", [])], "once, for the judges that the job names"
    run_self_check()
    assert SelfCheck.objects.get().passes
    with django_capture_on_commit_callbacks():
        client.post(address, asked)
    run_self_check()
    assert SelfCheck.objects.count() == 2, "it may be asked again once the worker has ended"
    background.enqueue(self_checks.TASK, 0, judges=[judge.pk])
    run_self_check()
    assert SelfCheck.objects.count() == 2, "quiet where the collection is gone"


@pytest.mark.django_db
def test_a_worker_that_was_killed_while_it_asked_is_told_of_and_nobody_pays_twice(
    books, client, model_server: LocalModels, monkeypatch
):
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    make_judge(model_server, "good")
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: ["one"])
    address = "/c/books/panel/self-check/"
    client.post(address, {"judge": "good"})
    assert leases.claim(BackgroundJob, kind=self_checks.TASK) is not None
    BackgroundJob.objects.update(lease_until=timezone.now())
    run_self_check()
    page = client.get("/c/books/panel/").text
    assert "The job failed" in page and "was stopped." in page and not model_server.requests()
    assert "in the background" in client.post(address, {"judge": "good"}, follow=True).text


@pytest.mark.django_db
def test_a_pair_on_which_references_differ_is_no_probe_and_the_offline_panel_costs_nothing(books):
    query = make_query(books, "Which?")
    disputed, other = make_pair(books, query), make_pair(books, query)
    for name, grade in (("experts", 0), ("qrels", 3)):
        make_judgment(disputed, make_assessor(books, name, "reference"), grade)
    make_judgment(other, make_assessor(books, "qrels", "reference"), 0)
    assert f"query-{query.pk}" not in {probe.name for probe in self_checks.collection_probes(books)}
    _, document = check("--panel", "offline")
    assert len(document["judges"]) == 5 and all(one["cost"] == 0 for one in document["judges"])
    assert all(one["repeated"] == one["repeats"] for one in document["judges"])


@pytest.mark.django_db
def test_the_question_takes_few_statements_however_many_queries_have_a_reference(
    books, client, django_assert_max_num_queries
):
    reference = make_assessor(books, "qrels", "reference")
    for number in range(self_checks.OWN + 2):
        query = make_query(books, f"Query {number}?")
        for grade in (3, 0):
            make_judgment(make_pair(books, query), reference, grade)
    assert sum(probe.own for probe in self_checks.collection_probes(books)) == self_checks.OWN
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    with django_assert_max_num_queries(16):
        assert client.get("/c/books/panel/self-check/?panel=offline").status_code == 200


@pytest.mark.django_db
def test_an_unknown_judge_or_panel_asks_nobody(books, client):
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    Panel.objects.create(name="films:chosen", ensemble=[])
    for query in ("judge=nobody", "panel=nobody", "panel=films:chosen", ""):
        text = client.get(f"/c/books/panel/self-check/?{query}", follow=True).text
        assert "Not started" in text, query
    offline = client.get("/c/books/panel/self-check/?panel=offline").text
    assert "offline-bm25" in offline and "free" in offline and "at this cost" not in offline
