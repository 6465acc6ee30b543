"""Pages of agents: the table, traces, one trace, reference answers, starting and stopping, files, suites."""

import csv
import json
from io import StringIO

import pytest
from tokenizers import Tokenizer, models

from annotation.models import AuditEntry, Role
from benchmark.agents.board import build_board
from benchmark.agents.sampling import ensure_sample
from benchmark.agents.suites import suite_board
from benchmark.models import AgentJob, AgentSample, Suite, Trace
from tests.benchmark.agents.scripted import wings, with_aspects
from tests.benchmark.agents.test_study import write_references
from tests.factories import client_of, make_member
from tests.reading import flat, page_text
from tests.site.test_statements import statements as statements

pytestmark = pytest.mark.django_db
HOME = "/c/wings/benchmark/agents/"
OFFLINE = "offline-rewriter"
JUDGED = {"aspect_scores": {"a1": 1.0, "a2": 0.5}, "importances": {"a1": 3, "a2": 1}, "overall_quality": 4}


@pytest.fixture
def collection():
    return with_aspects(wings(2))


@pytest.fixture
def charlie(collection):
    return client_of(make_member(collection, "charlie", Role.ADMIN))


def traced(collection, protocol="adaptive", agents=("reader", "writer")):
    """A ready job whose traces are written by hand: both agents search twice, the second time alike."""
    sample = ensure_sample(collection)
    options = {"protocol": protocol, "rounds": 3 if protocol == "fixed" else 100, "tokens": 2048}
    options |= {"tokenizer": "word pieces of 5", "agents": {name: 1 for name in agents}}
    options |= {"retrievers": [{"name": "bm25", "kind": "bm25", "recipe": {}}]}
    job = AgentJob.objects.create(
        collection=collection, kind="search", key=protocol, sample=sample, options=options, state="ready"
    )
    for query in sample.queries[str(collection.pk)]:
        for name in agents:
            found = {"returned": ["alpha-1", "gamma-1"], "truncated": ["gamma-1"]}
            rounds = [{"search": "alpha", **found}, {"search": "alpha again", **found}]
            said = {"answer": "It lifts [alpha-1] [x9].", "confidence": 80, "citations": ["alpha-1"]}
            answers = [{"round": 2, **said, "unknown_citations": ["x9"], "problem": ""}]
            values = {"rounds": rounds, "answers": answers, "stop": "answered", "searches": 2}
            Trace.objects.create(job=job, query_id=query, retriever="bm25", agent=name, **values)
    return job


def graded(job):
    values = {"kind": "grade", "key": f"grade-{job.pk}", "graded": job, "options": {"judge": {"grader": 1}}}
    found = AgentJob.objects.create(collection=job.collection, state="ready", **values)
    for trace in Trace.objects.filter(job=job):
        found.assessments.create(trace=trace, round=2, completeness=5, justification="Fine.", **JUDGED)
    return found


def test_the_table_shows_values_means_and_what_they_are(charlie, collection):
    assert f"{HOME}start/search/" in page_text(charlie, HOME)
    assert "No reference answers yet" in page_text(charlie, f"{HOME}references/")
    graded(traced(collection))
    page = page_text(charlie, HOME)
    aer = f"{4 * 0.951229424500714:.4f}"
    assert page.count(aer) == 3 and f"<strong>{aer}</strong>" in page  # two agents and their mean
    assert "word pieces of 5" in page and "Halves go up." in page and "grader" in page
    rows = [row.split(",") for row in charlie.get(f"{HOME}?table=agents&as=csv").text.splitlines()]
    assert [row[1] for row in rows[1:]] == ["mean", "reader", "writer"]
    assert "toprule" in charlie.get(f"{HOME}?table=agents&as=tex").text
    traced(collection, "fixed")
    for address, measure in ((HOME, "alpha-nDCG@15"), (f"{HOME}?protocol=adaptive", "AER")):
        assert measure in page_text(charlie, address), "each protocol has its newest job"


def test_grades_are_over_the_queries_of_which_every_answer_was_graded(charlie, collection):
    """The reader's second answer is not gradable: its query is in no cell's mean, and AER is of the first alone."""
    job = graded(traced(collection))
    first, second = sorted({row.trace.query_id for row in job.assessments.select_related("trace")})
    job.assessments.filter(trace__query=first).update(overall_quality=3)
    job.assessments.filter(trace__query=second).update(overall_quality=5)
    lost = {"overall_quality": None, "completeness": None, "problem": "it cannot be read"}
    job.assessments.filter(trace__query=second, trace__agent="reader").update(**lost)
    board = build_board(job.graded)
    assert [cell.values["quality"] for cell in board.lines[0]["cells"]] == [3, 3]
    assert board.lines[0]["mean"]["aer"] == pytest.approx(3 * 0.951229424500714)
    assert (board.common, board.document["common_queries"]) == (1, 1)
    assert [cell.not_graded for cell in board.lines[0]["cells"]] == [1, 0]


def test_a_suite_with_one_agent_is_in_the_order_of_its_values(collection):
    """BRIGHT-Pro tables 3 and 16."""
    job = traced(collection, agents=("reader",))
    job.options["retrievers"] = [{"name": name, "kind": "bm25", "recipe": {}} for name in ("a", "b", "bm25")]
    job.save()
    for trace in list(Trace.objects.filter(job=job)):
        for name in ("a", "b"):
            trace.pk, trace.retriever = None, name
            trace.save()
    grades = graded(job)
    grades.assessments.filter(trace__retriever="b").update(overall_quality=5)
    grades.assessments.filter(trace__retriever="a").update(overall_quality=2)
    suite = Suite.objects.create(name="one")
    assert list(suite_board(suite, [build_board(job)]).lines) == ["b", "bm25", "a"]
    assert [line["retriever"] for line in build_board(job).lines] == ["b", "bm25", "a"]


def test_traces_say_what_was_found_and_what_was_never_reached(charlie, collection):
    job = traced(collection)
    page = page_text(charlie, f"{HOME}{job.number}/traces/")
    assert "50.0%" in page  # of the places, repeated
    assert "25.0%" in page  # the weight of a2, which beta-1 alone supports
    assert "2 of 2" in page and "part 2 of lift" in page
    rows = list(csv.reader(StringIO(charlie.get(f"{HOME}{job.number}/traces/?table=traces&as=csv").content.decode())))
    assert rows[1][:2] == ["bm25", "reader"] and list(map(float, rows[1][2:])) == [2, 0, 0.5, 1, 0.25, 0.5, 0.5]
    assert charlie.get(f"{HOME}{job.number}/traces/?chart=gold&as=svg").status_code == 200
    lines = b"".join(charlie.get(f"{HOME}{job.number}/traces.jsonl").streaming_content).decode().splitlines()
    assert len(lines) == 8 and json.loads(lines[0])["returned"] == ["alpha-1", "gamma-1"]
    assert charlie.get(f"{HOME}{job.number}/judgments.jsonl").status_code == 404
    graded(job)
    judgments = b"".join(charlie.get(f"{HOME}{job.number}/judgments.jsonl").streaming_content).decode().splitlines()
    assert len(judgments) == 4
    write_references(collection)
    assert "cites" in page_text(charlie, f"{HOME}references/")
    written = AgentJob.objects.get(kind="reference")
    lines = b"".join(charlie.get(f"{HOME}{written.number}/references.jsonl").streaming_content).decode().splitlines()
    assert len(lines) == 2


def test_one_trace_shows_rounds_documents_answers_and_grades(charlie, collection):
    graded(traced(collection))
    page = page_text(charlie, f"{HOME}traces/{Trace.objects.first().pk}/")
    for words in (
        *("reader with bm25", "gold: a1", "shown before", "no gold", ", cut", "confidence 80 of 100", "4 / 5", "5 / 5"),
        "Cites documents that were not returned until then: x9",
        "a2: part 2 of lift (25.0%)",
    ):
        assert words in page, words


def test_pages_cost_few_statements(charlie, collection, statements):
    job = traced(collection)
    graded(job)
    for path in (HOME, f"{HOME}{job.number}/traces/", f"{HOME}traces/{Trace.objects.first().pk}/"):
        statements.clear()
        page_text(charlie, path)
        assert len(statements) <= 20, (path, statements)


def test_a_job_is_estimated_and_confirmed(charlie, collection, settings, tmp_path):
    settings.BASE_MODELS = tmp_path
    (tmp_path / "letters").mkdir()
    Tokenizer(models.WordLevel({"?": 0}, unk_token="?")).save(str(tmp_path / "letters" / "tokenizer.json"))
    given = {"retrievers": ["bm25"], "agents": [OFFLINE], "protocol": "fixed", "budget": "2", "tokenizer": "letters"}
    page = flat(charlie.post(f"{HOME}start/search/", given).content.decode())
    assert "Start these agents?" in page and not AgentJob.objects.exists() and not AgentSample.objects.exists()
    moved = charlie.post(f"{HOME}start/search/", {**given, "confirm": "1"})
    assert (moved.status_code, moved["Location"]) == (302, f"{HOME}?protocol=fixed")
    job = AgentJob.objects.get()
    assert (job.options["budget"], job.total, job.made_by) == (2.0, 2, "charlie")
    assert job.options["tokenizer"] == "letters"
    assert "0 of 2 done." in page_text(charlie, HOME)
    assert AuditEntry.objects.filter(act="agents.started").count() == 1


def test_what_cannot_be_started_keeps_the_form(charlie, collection):
    response = charlie.post(f"{HOME}start/grade/", {"protocol": "fixed", "judge": OFFLINE})
    assert response.status_code == 422 and "not searched wings" in response.text
    assert 'name="judge"' in response.text
    assert charlie.get(f"{HOME}start/else/").status_code == 404
