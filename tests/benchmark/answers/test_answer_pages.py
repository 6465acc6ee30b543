"""Benchmark > Answers: start with an estimate, progress, the tables, one answer, a suite, and what is refused."""

import re
from html import unescape

import pytest

from annotation.models import AuditEntry, Role
from benchmark.answers import evaluations, results
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.suites.groups import make_suite
from jobs import leases
from jobs.models import JobState
from tests.benchmark.answers import scene
from tests.evidence import make_judge
from tests.factories import client_of, make_collection, make_member, make_query
from tests.reading import hidden_fields

pytestmark = pytest.mark.django_db
HOME = "/c/wings/benchmark/answers/"


@pytest.fixture
def wings():
    collection = scene.wings_collection()
    scene.two_runs(collection)
    for name in ("writer", "grader"):
        make_judge(name)
    return collection


@pytest.fixture
def charlie(wings):
    return client_of(make_member(wings, "charlie", Role.ADMIN))


def evaluation_of(collection, *, correct=("q1",), **more):
    """A finished evaluation without a model: answers to these queries are right from every run."""
    evaluation = scene.begin(collection, **more)
    for run in evaluations.runs_in(evaluation):
        for query in evaluations.answered_queries(collection):
            for name in evaluation.options["generators"]:
                GeneratedAnswer.objects.create(
                    evaluation=evaluation, query=query, run=run, generator=name, documents=[], document_length=8,
                    context_length=8, answer=f"{name} says it lifts.", correct=query.external_id in correct,
                )  # fmt: skip
    AnswerEvaluation.objects.filter(pk=evaluation.pk).update(state=JobState.READY, done=evaluation.total)
    evaluation.refresh_from_db()
    return evaluation


def text(client, path, status=200):
    response = client.get(path)
    assert response.status_code == status, path
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_without_runs_or_answers_the_page_says_what_to_do_next(wings, charlie):
    assert charlie.get(HOME).context["answerable"] and f'href="{HOME}start/"' in charlie.get(HOME).text
    wings.query_set.update(answers=[])
    assert not charlie.get(HOME).context["answerable"]
    wings.runs.all().delete()
    assert "Add a run first." in text(charlie, HOME)
    assert "Add a run first." in text(charlie, f"{HOME}start/")


GIVEN = {"systems": ["bm25"], "generator": ["writer"], "judge": "grader", "k": "2", "contexts": "document"}


def test_the_form_shows_what_it_costs_and_starts_when_that_is_confirmed(wings, charlie):
    shown = charlie.post(f"{HOME}start/", {**GIVEN, "max_calls": "9"})
    assert shown.context["estimate"].calls.expected == 4
    assert not AnswerEvaluation.objects.exists()
    started = charlie.post(f"{HOME}start/", {**hidden_fields(shown), "confirm": "1"})
    found = AnswerEvaluation.objects.get()
    assert started["Location"] == f"{HOME}{found.number}/"
    assert (found.state, found.made_by, found.options["max_calls"]) == (JobState.WAITING, "charlie", 9)
    assert AuditEntry.objects.filter(act="answers.started").count() == 1
    page = charlie.get(f"{HOME}{found.number}/").content.decode()
    assert "data-poll" in page and "0 of 2 done." in text(charlie, f"{HOME}{found.number}/")


def test_a_partial_result_is_marked_and_has_no_mean(wings, charlie):
    found = evaluation_of(wings)
    GeneratedAnswer.objects.filter(query__external_id="q2", run__name="dense").delete()
    AnswerEvaluation.objects.update(state=JobState.FAILED, error="Stopped by the call limit: raise it")
    page = charlie.get(f"{HOME}{found.number}/")
    assert page.context["result"]["waiting"] == 1 and page.context["result"]["means"] == []
    assert AnswerEvaluation.objects.get().error in text(charlie, f"{HOME}{found.number}/") and "Resume" in page.text


def test_what_is_cancelled_goes_on_with_other_limits_and_the_log_tells_of_both(wings, charlie):
    found = scene.begin(wings, max_calls=3)
    for act, given, state in (("cancel", {}, JobState.CANCELLED), ("go-on", {"max_calls": "50"}, JobState.WAITING)):
        charlie.post(f"{HOME}{found.number}/{act}/", given)
        found.refresh_from_db()
        assert found.state == state
    assert found.options["max_calls"] == 50
    acts = AuditEntry.objects.filter(act="answers.control").order_by("pk")
    assert list(acts.values_list("details__what", flat=True)) == ["cancel", "go-on"]
    leases.claim(AnswerEvaluation)
    refused = charlie.post(f"{HOME}{found.number}/go-on/", follow=True)
    assert [str(message.level_tag) for message in refused.context["messages"]] == ["error"] and acts.count() == 2
    assert AnswerEvaluation.objects.get().state == JobState.RUNNING


def test_answers_are_listed_by_run_and_generator_and_what_disagrees_is_found(wings, charlie, monkeypatch):
    address = f"{HOME}{evaluation_of(wings, generators=('writer', 'grader')).number}/queries/"
    assert address in charlie.get(HOME).text

    def listed(query):
        return charlie.get(f"{address}?{query}").context["listed"]

    all_of = listed("system=dense&generator=grader")
    assert (all_of["run"].name, all_of["generator"], all_of["page"].total_count) == ("dense", "grader", 2)
    # dense finds nothing by the original qrels, and q1 was answered rightly all the same.
    for query, names in (("system=dense&generator=grader&show=disagree", ["q1"]), ("show=wrong", ["q2"])):
        assert [one.query.external_id for one in listed(query)["page"].answers] == names
    for query, count in (("show=problems", 0), ("system=nothing&page=x&show=y", 2)):
        assert listed(query)["page"].total_count == count
    assert charlie.get(f"{address}?before=77").status_code == 404
    monkeypatch.setattr("benchmark.answers.listing.PAGE_SIZE", 1)
    first = charlie.get(address)
    link = re.search(r'href="([^"]+page=2)"', first.text)
    assert first.context["listed"]["page"].has_next and link
    second = charlie.get(address + unescape(link[1])).context["listed"]["page"]
    assert [one.query.external_id for one in second.answers] == ["q2"] and not second.has_next


def test_one_answer_shows_its_contexts_and_its_verdict(wings, charlie):
    found = evaluation_of(wings)
    query = wings.query_set.get(external_id="q1")
    first = wings.document_set.get(external_id="d1")
    answer = GeneratedAnswer.objects.get(query=query, run__name="bm25")
    answer.documents = [first.pk]
    answer.save()
    told = text(charlie, f"{HOME}{found.number}/queries/{query.pk}/?system=bm25&generator=writer")
    assert "writer from bm25" in told and answer.answer in told and "a secret lift" in told
    assert scene.TEXTS["d1"] in told and "1. d1 relevant" in told
    assert "Judged by grader." in told
    later = make_query(wings, "new", external_id="new", answers=["x"])
    assert "not answered yet" in text(charlie, f"{HOME}{found.number}/queries/{later.pk}/")
    stranger = make_query(make_collection("stones"), "other")
    text(charlie, f"{HOME}{found.number}/queries/{stranger.pk}/", status=404)


def test_tables_and_charts_are_saved_in_every_form(wings, charlie):
    evaluation_of(wings)
    scene.filled_version(wings, q2="d3")
    assert (
        charlie.get(HOME).context["result"]["moved"]
        == charlie.get(f"{HOME}?before=2&after=1").context["result"]["moved"]
    )
    assert "Mean over systems writer 0.7500" in text(charlie, HOME)
    csv = charlie.get(f"{HOME}?table=rag-align&as=csv").text
    assert csv.startswith("system,generator,") and csv.count("\n") == 1 + 2 + 1
    rows = charlie.get(f"{HOME}?table=rag-align&as=json").json()["rows"]
    assert rows[0][:5] == ["bm25", "writer", 1.0, 1.0, 0.0]
    assert "\\begin{tabular}" in charlie.get(f"{HOME}?table=rag-retrieval&as=tex").text
    for key in ("rag-before", "rag-after"):
        assert charlie.get(f"{HOME}?chart={key}&as=csv").text.count("\n") == 3
    assert charlie.get(f"{HOME}?table=none&as=csv").status_code == 404


def test_a_suites_page_has_a_column_for_each_member(wings, charlie):
    stones = make_collection("stones")
    make_member(stones, "bob", Role.ADMIN)
    evaluation_of(wings, k=2)
    suite = make_suite(name="main", collections=[wings])
    address = f"/suites/{suite.pk}/answers/"
    assert "No answers yet" in text(charlie, address), "its newest evaluation is at another k"
    AnswerEvaluation.objects.update(options={**AnswerEvaluation.objects.get().options, "k": 10})
    assert "bm25 writer" in text(charlie, address)
    assert charlie.get(f"{address}?table=main-rag-align&as=json").json()["rows"][0][0] == "mean"
    assert address in charlie.get(f"/suites/{suite.pk}/").content.decode()
    hidden = make_suite(name="hidden", collections=[wings, stones])
    text(charlie, f"/suites/{hidden.pk}/answers/", status=404)


def test_a_result_is_worked_out_once(wings, charlie, monkeypatch):
    found = evaluation_of(wings)
    first = text(charlie, HOME)
    monkeypatch.setattr("benchmark.answers.results.compute_result", lambda *_: pytest.fail("it is stored"))
    assert text(charlie, HOME) == first
    pair = results.choose_versions(wings)
    assert results.load_result(found, pair)["complete"]
