"""Jobs that ask models, by the API: hole filling, answers, agents, synthetic queries, web searches, evidence."""

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import AuditEntry, Membership, Role
from annotation.models.web_search import WebSearch
from annotation.web_search import searching
from benchmark.agents import study
from benchmark.models import AgentJob, AnswerEvaluation, Filling, Qrels, Synthesis
from benchmark.synthesis import lifecycle
from corpus.models import Document, Item, Label, Query
from jobs import leases
from judges.models import Campaign
from tests.api.conftest import Call
from tests.benchmark.agents.scripted import finish, wings, with_aspects
from tests.benchmark.answers import scene
from tests.benchmark.answers.test_answer_pages import evaluation_of
from tests.evidence import make_judge
from tests.factories import make_collection, make_document, make_member, make_query
from tests.rankings import make_run

pytestmark = pytest.mark.django_db


def last_act() -> tuple[str, dict[str, Any]]:
    entry = AuditEntry.objects.order_by("-pk")[0]
    return entry.act, entry.details


@pytest.fixture
def books() -> Membership:
    """A collection with two runs over four documents and the admin Alice; the qrels know none of them."""
    collection = make_collection("books")
    for name in "abcd":
        make_document(collection, f"Text of {name}.", external_id=name)
    make_query(collection, "Question?", external_id="q1")
    make_run(collection, "one", {"q1": ["a", "b"]})
    make_run(collection, "two", {"q1": ["b", "c"]})
    return make_member(collection, "alice", Role.ADMIN)


def test_a_hole_filling_from_the_estimate_to_its_version(call: Call, books: Membership) -> None:
    alice, here = books.user, "collections/books/hole-fillings"
    estimate = call(alice, "POST", f"{here}/estimate", {"depth": 2}).json()
    assert (estimate["pool"], estimate["judged"], estimate["candidates"], estimate["cost"]) == (3, 0, 3, 0.0)
    asked = {"depth": 2, "policy": "debate", "panel": "offline"}
    assert call(alice, "POST", f"{here}/estimate", asked).json()["calls"] > 0
    assert not Qrels.objects.exists() and not Filling.objects.exists()
    for wrong, field in (
        ({"runs": [999]}, "body.runs"),
        ({"policy": "debate", "panel": "none"}, "body.panel"),
        ({"filter": ["a"]}, "body.filter"),
        ({"depth": 0}, "body.body.depth"),
    ):
        refused = call(alice, "POST", here, wrong)
        assert refused.status_code == 422 and refused.json()["errors"][0]["field"] == field, refused.content
    assert "version 7" in call(alice, "POST", here, {"qrels": 7}).json()["detail"]
    key = {"Idempotency-Key": "fill"}
    made = call(alice, "POST", here, {"depth": 2}, **key)
    assert made.status_code == 201, made.content
    filling = made.json()
    assert (filling["policy"], filling["before"], filling["funnel"]["candidates"]) == ("people", 1, 3)
    assert call(alice, "POST", here, {"depth": 2}, **key).json() == filling and Filling.objects.count() == 1
    assert last_act() == ("filling.started", {"filling": filling["number"], "policy": "people", "pairs": 3})
    assert Item.objects.filter(reason="hole", state="open").count() == 3
    path = f"{here}/{filling['number']}"
    none = call(alice, "POST", f"{path}/finish")
    assert none.status_code == 422 and "No pair is resolved" in none.json()["detail"]
    ended = call(alice, "POST", f"{path}/cancel").json()
    assert ended["state"] == "cancelled" and not Item.objects.filter(state="open").exists()
    assert call(alice, "POST", f"{path}/cancel").status_code == 422
    assert [one["number"] for one in call(alice, "GET", here).json()["items"]] == [filling["number"]]
    refused = call(alice, "POST", f"{here}/send", {"first": 2})
    assert refused.status_code == 422 and "ranking uncertainty first" in refused.json()["detail"]


def test_a_hole_filling_that_is_finished_twice_ends_once(call: Call, books: Membership) -> None:
    filling = call(books.user, "POST", "collections/books/hole-fillings", {"depth": 2}).json()
    Label.objects.create(pair_id=Filling.objects.get().pairs[0], grade=1, origin="people")
    for _ in range(2):
        path = f"collections/books/hole-fillings/{filling['number']}/finish"
        assert call(books.user, "POST", path).json()["state"] == "filled"
    assert AuditEntry.objects.filter(act="filling.ended").count() == 1


def test_judges_fill_holes_in_a_campaign_that_is_paused_by_its_number(call: Call, books: Membership) -> None:
    alice, here = books.user, "collections/books/hole-fillings"
    body = {"depth": 2, "policy": "debate", "panel": "offline", "max_calls": 50}
    made = call(alice, "POST", here, body).json()
    assert made["campaign"] and made["state"] == "judging"
    paused = call(alice, "POST", f"collections/books/campaigns/{made['campaign']}/pause").json()
    assert paused["state"] == "paused" and Campaign.objects.get(number=made["campaign"]).state == "paused"


def test_answers_are_evaluated(call: Call) -> None:
    collection = scene.wings_collection()
    scene.two_runs(collection)
    for name in ("writer", "grader"):
        make_judge(name)
    alice, here = make_member(collection, "alice", Role.ADMIN).user, "collections/wings/answers"
    body = {"runs": ["bm25"], "generators": ["writer"], "judge": "grader", "k": 2}
    assert call(alice, "POST", f"{here}/estimate", body).json()["calls"] == 4
    wrong = call(alice, "POST", here, {**body, "runs": ["none"]})
    assert wrong.status_code == 422 and wrong.json()["errors"][0]["field"] == "body.runs"
    made = call(alice, "POST", here, {**body, "max_calls": 9})
    assert made.status_code == 201, made.content
    found = made.json()
    assert (found["state"], found["max_calls"], found["generators"], found["k"]) == ("waiting", 9, ["writer"], 2)
    path = f"{here}/{found['number']}"
    assert call(alice, "POST", f"{path}/cancel").json()["state"] == "cancelled"
    again = call(alice, "POST", f"{path}/cancel")
    assert again.status_code == 422 and "no longer allows" in again.json()["detail"]
    resumed = call(alice, "POST", f"{path}/go-on", {"max_calls": 20}).json()
    assert (resumed["state"], resumed["max_calls"]) == ("waiting", 20)
    assert last_act()[1] == {"evaluation": found["number"], "what": "go-on"}
    call(alice, "POST", f"{path}/cancel")
    assert call(alice, "POST", f"{path}/go-on").json()["max_calls"] == 20  # a limit that is left out stays
    AnswerEvaluation.objects.all().delete()
    ready = evaluation_of(collection)
    path = f"{here}/{ready.number}"
    figures = call(alice, "GET", f"{path}/figures").json()["document"]
    assert figures["complete"] and len(figures["cells"]) == 2
    rows = call(alice, "GET", f"{path}/queries?limit=3").json()
    assert rows["items"][0]["answer"] == "writer says it lifts." and rows["next"]
    assert call(alice, "GET", f"{path}/figures?before=99").status_code == 422


@pytest.mark.django_db(transaction=True)
def test_agents_search_and_their_traces_are_read(call: Call) -> None:
    collection = with_aspects(wings(2))
    alice, here = make_member(collection, "alice", Role.ADMIN).user, "collections/wings/agents"
    body = {"agents": ["offline-rewriter"], "protocol": "adaptive"}
    assert call(alice, "POST", f"{here}/estimate", body).json()["calls"] > 0 and not AgentJob.objects.exists()
    wrong = call(alice, "POST", here, {"agents": ["nobody"]})
    assert wrong.status_code == 422 and wrong.json()["errors"][0]["field"] == "body.agents"
    made = call(alice, "POST", here, body)
    assert made.status_code == 201, made.content
    assert (made.json()["kind"], made.json()["protocol"]) == ("search", "adaptive")
    job = AgentJob.objects.get()
    finish(job)
    path = f"{here}/{job.number}"
    assert call(alice, "GET", path).json()["state"] == "ready"
    board = call(alice, "GET", f"{path}/board").json()["document"]
    assert board["protocol"] == "adaptive" and board["retrievers"][0]["retriever"] == "bm25"
    traces = call(alice, "GET", f"{path}/traces").json()["items"]
    assert len(traces) == 2 and traces[0]["agent"] == "offline-rewriter"
    file = call(alice, "GET", f"{path}/files/traces")
    assert json.loads(file.getvalue().splitlines()[0])["retriever"] == "bm25"
    assert call(alice, "GET", f"{path}/files/judgments").status_code == 404
    assert call(alice, "GET", f"{path}/files/passwords").status_code == 422
    grading = call(alice, "POST", here, {"kind": "grade", "protocol": "adaptive", "judge": "offline-rewriter"}).json()
    assert (grading["kind"], grading["graded"]) == ("grade", job.number)
    assert call(alice, "GET", f"{here}/{grading['number']}/board").status_code == 404
    references = call(alice, "POST", here, {"kind": "reference", "judge": "offline-rewriter"}).json()
    assert references["kind"] == "reference" and last_act()[0] == "references.started"
    cancelled = call(alice, "POST", f"{here}/{references['number']}/cancel").json()
    assert cancelled["state"] == "cancelled"
    assert len(call(alice, "GET", here).json()["items"]) == 3


def test_people_write_and_rate_reference_answers(call: Call) -> None:
    collection = with_aspects(wings(2))
    alice = make_member(collection, "alice", Role.ADMIN).user
    bob, dana = make_member(collection, "bob").user, make_member(collection, "dana").user
    here = "collections/wings/reference-studies"
    assert "No study" in call(bob, "GET", f"{here}/writing").json()["detail"]
    assert call(alice, "POST", here, {"queries": 1}).status_code == 422
    job = AgentJob.objects.create(collection=collection, kind="reference", key="r", state="ready")
    for query in Query.objects.filter(collection=collection):
        job.references.create(query=query, answer="It lifts [alpha-1].", model="m")
    made = call(alice, "POST", here, {"queries": 1, "seed": 3})
    assert made.status_code == 201 and (made.json()["queries"], made.json()["written"]) == (1, 0), made.content
    assert call(bob, "GET", f"{here}/writing").json() == {
        "query": None, "text": "", "aspects": [], "passages": [], "free": 1,
    }  # fmt: skip
    mine = call(bob, "POST", f"{here}/writing/reserve").json()
    assert mine["query"] and mine["aspects"][0] == {"text": "part 1 of lift", "importance": 3}
    badly = call(bob, "POST", f"{here}/writing", {"answer": "It lifts [nothing]."})
    assert badly.status_code == 422
    cited = mine["passages"][0]["document"]
    assert call(bob, "POST", f"{here}/writing", {"answer": f"It lifts [{cited}]."}).json()["query"] is None
    assert call(bob, "GET", f"{here}/rating").json()["answer"] is None  # his own
    task = call(dana, "GET", f"{here}/rating").json()
    assert task["waiting"] == 1 and {task["first"], task["second"]} == {"It lifts [alpha-1].", f"It lifts [{cited}]."}
    grades = {"completeness": 4, "quality": 5}
    body = {"answer": task["answer"], "first": grades, "second": grades}
    assert call(dana, "POST", f"{here}/rating", body).json()["answer"] is None
    assert call(dana, "POST", f"{here}/rating", body).status_code == 422
    assert call(dana, "POST", f"{here}/rating/undo").json()["answer"] == task["answer"]
    assert call(dana, "POST", f"{here}/rating/undo").status_code == 422
    assert call(bob, "POST", f"{here}/close").status_code == 403
    assert call(alice, "POST", f"{here}/close").json()["closed_at"]
    assert study.open_study(collection) is None
    (row,) = call(alice, "GET", here).json()["items"]
    assert (row["written"], [one["criterion"] for one in row["results"]]) == (1, ["completeness", "quality"])


@pytest.fixture
def steel(settings: Any, tmp_path: Path) -> Membership:
    settings.VAR = tmp_path
    collection = make_collection("steel")
    for number in range(4):
        make_document(collection, f"Slab {number} cracks when its skin cools. It is held by core {number}.")
        make_query(collection, f"why does slab {number} crack", external_id=f"q{number}")
    return make_member(collection, "alice", Role.ADMIN)


@pytest.mark.django_db(transaction=True)
def test_queries_are_written_listed_and_imported(call: Call, steel: Membership) -> None:
    alice, here = steel.user, "collections/steel/syntheses"
    body = {"judge": "offline-rewriter", "limit": 3}
    assert call(alice, "POST", f"{here}/estimate", body).json()["cost"] == 0.0 and not Synthesis.objects.exists()
    wrong = call(alice, "POST", here, {"judge": "nobody"})
    assert wrong.status_code == 422 and wrong.json()["errors"][0]["field"] == "body.judge"
    keywords = call(alice, "POST", here, {"kind": "keywords", "judge": "offline-rewriter", "export": 9})
    assert keywords.status_code == 422 and keywords.json()["errors"][0]["field"] == "body.export"
    made = call(alice, "POST", here, body)
    assert made.status_code == 201 and made.json()["total"] == 3, made.content
    path = f"{here}/{made.json()['number']}"
    early = call(alice, "POST", f"{path}/import")
    assert early.status_code == 422 and "no bundle to import" in early.json()["detail"]
    lifecycle.work_on_synthesis(leases.claim(Synthesis), lambda: False)
    found = call(alice, "GET", path).json()
    assert (found["state"], found["made"], found["dropped"], found["kind"]) == ("ready", 3, 0, "bundles")
    rows = call(alice, "GET", f"{path}/queries?limit=2").json()
    assert len(rows["items"]) == 2 and rows["next"] and rows["items"][0]["bundle"]["synthetic"]
    assert call(alice, "GET", f"{path}/queries?dropped=true").json()["items"] == []
    assert len(call(alice, "GET", f"{path}/file").content.decode().splitlines()) == 3
    assert call(alice, "POST", f"{path}/import").json()["queries"] == 3
    assert Query.objects.filter(metadata__contains={"synthetic": True}).count() == 3
    assert call(alice, "POST", f"{path}/cancel").status_code == 422
    ask = call(alice, "POST", here, {"kind": "ask", "judge": "offline-rewriter", "limit": 1}).json()
    refused = call(alice, "POST", f"{here}/{ask['number']}/import")
    assert refused.status_code == 422 and "as soon as they are written" in refused.json()["detail"]
    assert call(alice, "POST", f"{here}/{ask['number']}/cancel").json()["state"] == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_the_web_is_searched_for_queries(call: Call, steel: Membership) -> None:
    alice, here = steel.user, "collections/steel/web-searches"
    body = {"judge": "offline-web-search", "limit": 2, "seed": 1}
    assert call(alice, "POST", f"{here}/estimate", body).json()["calls"] == 2
    assert call(alice, "POST", here, {"judge": "none"}).json()["errors"][0]["field"] == "body.judge"
    before = Document.objects.count()
    made = call(alice, "POST", here, body)
    assert made.status_code == 201 and made.json()["total"] == 2, made.content
    searching.perform_search(leases.claim(WebSearch), lambda: False)
    path = f"{here}/{made.json()['number']}"
    found = call(alice, "GET", path).json()
    assert found["state"] == "ready" and found["documents"] == Document.objects.count() - before > 0
    pages = call(alice, "GET", f"{path}/results").json()["items"]
    assert pages[0]["rank"] == 1 and pages[0]["document"] and pages[0]["query"].startswith("q")
    assert call(alice, "POST", f"{path}/go-on").status_code == 422
    assert last_act()[0] == "import.web"


def test_evidence_is_estimated_and_its_campaign_started(call: Call, books: Membership) -> None:
    here = "collections/books/campaigns/evidence"
    estimate = call(books.user, "POST", f"{here}/estimate", {"writer": "offline-writer"})
    assert estimate.status_code == 200 and estimate.json()["calls"] == 0.0, estimate.content
    started = call(books.user, "POST", here, {"writer": "offline-writer"}).json()
    assert started["added"] == 0
    wrong = call(books.user, "POST", here, {"writer": "nobody"})
    assert wrong.status_code == 422 and wrong.json()["errors"][0]["field"] == "body.writer"
