"""Teacher scores from a rerank API: three formats, every fault, and nothing paid twice."""

import json
import time

import pytest
from django.db import DatabaseError, transaction

from annotation.exports.reranker_scores import scoring
from annotation.exports.reranker_scores.formats import APIS
from annotation.models import TeacherAnswer, TeacherScore
from corpus.models import Pair
from tests.annotation.exports.reranker_scores.rerank_server import changed, dropped, rerank_server, score, status, text
from tests.called import call
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.judged_books import export, lines, make_books

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(monkeypatch, settings):
    settings.RETRY_SECONDS = 0.001
    monkeypatch.setenv("RERANK_KEY", "secret-key")
    with rerank_server() as server:
        yield server


@pytest.fixture
def books():
    books = make_collection("books")
    for q in range(2):
        query = make_query(books, f"red fox number{q}", external_id=f"q{q}")
        for d, words in enumerate(("red fox number0", "a red hen", "blue")):
            make_pair(books, query, make_document(books, words, external_id=f"d{q}{d}", title="T" if d == 1 else ""))
    return books


def ask(server, *options, api="cohere", model="rerank-x", code=0):
    """The document of the command, and its one line of complaint."""
    found = ("--api", api, "--model", model, "--url", server.url, "--key-env", "RERANK_KEY", "--json")
    done = call("teacher_scores", "books", *found, *options)
    assert done.code == code, done.err
    return json.loads(done.out or "null"), done.err


@pytest.mark.parametrize(("api", "path", "top"), [
    ("cohere", "/v2/rerank", "top_n"), ("jina", "/v1/rerank", "top_n"), ("voyage", "/v1/rerank", "top_k"),
])  # fmt: skip
def test_each_format_is_asked_once_a_query_and_its_scores_become_the_pairs(server, books, api, path, top):
    found, _ = ask(server, api=api)
    assert (found["pairs"], found["scored"], found["calls"], found["failed"]) == (6, 6, 2, 0)
    assert {one["path"] for one in server.asked} == {path}
    assert all(one[top] == 3 and one["model"] == "rerank-x" for one in server.asked)
    assert {one["key"] for one in server.asked} == {"Bearer secret-key"}
    for pair in Pair.objects.select_related("query", "document"):
        title = f"{pair.document.title}\n" if pair.document.title else ""
        assert pair.teacher_score == pytest.approx(score(pair.query.text, title + pair.document.text))
    assert "T\na red hen" in server.asked[0]["documents"]
    assert "secret-key" not in "".join(TeacherAnswer.objects.values_list("raw", flat=True))


def test_nothing_is_asked_twice_and_only_what_is_new_is_asked(server, books):
    ask(server)
    found, spoken = ask(server)
    assert (found["pairs"], found["calls"], len(server.asked)) == (0, 0, 2)
    assert "nothing to do" in spoken
    make_pair(books, books.query_set.get(external_id="q1"), make_document(books, "fox", external_id="new"))
    assert ask(server)[0]["scored"] == 1
    assert [len(one["documents"]) for one in server.asked] == [3, 3, 1]

    with pytest.raises(DatabaseError, match="Cannot update or delete"), transaction.atomic():
        TeacherScore.objects.update(score=1.0)


def test_a_second_teacher_gives_the_mean_and_an_imported_score_is_left_alone(server, books):
    imported = Pair.objects.get(query__external_id="q0", document__external_id="d02")
    Pair.objects.filter(pk=imported.pk).update(teacher_score=0.9)
    assert ask(server)[0]["pairs"] == 5
    server.faults = [changed(lambda found: [{**one, "relevance_score": 0.0} for one in found])] * 2
    assert ask(server, model="rerank-y")[0]["pairs"] == 5
    pair = Pair.objects.get(query__external_id="q0", document__external_id="d00")
    assert pair.teacher_score == pytest.approx(0.5)
    imported.refresh_from_db()
    assert imported.teacher_score == 0.9
    assert ask(server, "--replace")[0]["scored"] == 1
    imported.refresh_from_db()
    assert imported.teacher_score == 0.0


FAULTS = {
    "429": status(429, retry_after="0"),
    "500": status(500),
    "dropped": dropped,
    "not JSON": text("<html>"),
    "no results": text('{"id": "r1"}'),
    "NaN": text('{"results": [{"index": 0, "relevance_score": NaN}]}'),
    "index out of range": changed(lambda found: [{**found[0], "index": 3}, *found[1:]]),
    "negative index": changed(lambda found: [{**found[0], "index": -1}, *found[1:]]),
    "boolean index": changed(lambda found: [found[0], {**found[1], "index": True}, *found[2:]]),
    "index twice": changed(lambda found: [found[0], *found]),
    "score as text": changed(lambda found: [{**found[0], "relevance_score": "0.9"}, *found[1:]]),
    "score missing": changed(lambda found: [{"index": 0}, *found[1:]]),
}


def test_every_fault_is_kept_and_tried_again(server, books):
    for number, (name, fault) in enumerate(FAULTS.items()):
        server.faults = [fault]
        found, _ = ask(server, model=f"rerank-{number}")
        assert (found["scored"], found["failed"], found["calls"], found["calls_failed"]) == (6, 0, 3, 1), name
        kept_answer = TeacherAnswer.objects.exclude(error="").get(model=f"rerank-{number}")
        assert kept_answer.scores.count() == 0 and (kept_answer.raw or name == "dropped"), name


def test_of_half_an_answer_the_half_is_kept_and_the_rest_asked_again(server, books):
    server.faults = [changed(lambda found: found[:2])]
    found, _ = ask(server)
    assert (found["scored"], found["calls"], found["calls_failed"]) == (6, 3, 1)
    assert sorted(len(one["documents"]) for one in server.asked) == [1, 3, 3]
    assert "1 of 3 documents" in TeacherAnswer.objects.exclude(error="").get().error

    server.faults = [status(429, retry_after="1")]
    began = time.monotonic()
    assert ask(server, model="rerank-y")[0]["scored"] == 6
    assert time.monotonic() - began >= 1


def test_what_still_fails_is_said_and_asked_for_the_next_time(server, books):
    Pair.objects.filter(query__external_id="q1").delete()
    server.faults = [status(503)] * 4
    found, said = ask(server, code=3)
    assert (found["failed"], found["calls"], found["scored"]) == (3, 4, 0)
    assert "3 pairs" in said and "scripted 503" in said
    assert ask(server)[0]["scored"] == 3


def test_a_wrong_key_is_not_tried_again_and_is_named(server, books):
    server.faults = [status(401)] * 2
    found, said = ask(server, code=3)
    assert (found["failed"], found["calls"]) == (6, 2)
    assert "401" in said and "RERANK_KEY" in said and "secret-key" not in said


def test_bad_input_is_one_line_and_addresses_may_be_a_base_a_version_or_whole(server, books):
    assert "--api must be" in ask(server, api="exa", code=2)[1]
    assert "QUORUM_LOOPBACK_ONLY" in ask(server, "--url", "https://rerank.example", code=2)[1]
    assert "--url must begin" in ask(server, "--url", "rerank.example", code=2)[1]
    assert not server.asked

    assert APIS["cohere"].address("") == "https://api.cohere.com/v2/rerank"
    assert APIS["jina"].address("http://here:1/") == "http://here:1/v1/rerank"
    assert APIS["voyage"].address("http://here/v1") == "http://here/v1/rerank"
    assert APIS["cohere"].address("http://here/own/rerank") == "http://here/own/rerank"


def test_a_large_query_is_asked_in_pieces(server, books, monkeypatch):
    monkeypatch.setattr(scoring, "BATCH", 2)
    assert ask(server, "--limit", "5")[0]["scored"] == 5
    assert sorted(len(one["documents"]) for one in server.asked) == [1, 2, 2]


def test_the_answers_are_part_of_the_snapshot(server, tmp_path):
    books = make_books()
    ask(server)
    manifest = export(books, "prism", tmp_path / "out", teacher="scores")
    assert [file["name"] for file in manifest["files"]] == ["train.jsonl", "dev.jsonl", "teacher.jsonl"]
    answers = lines(tmp_path / "out" / "teacher.jsonl")
    assert len(answers) == 10
    assert (answers[0]["api"], answers[0]["model"]) == ("cohere", "rerank-x")
    scores = {
        (row["query_id"], row["doc_ids"][result["index"]]): result["relevance_score"]
        for row in answers
        for result in json.loads(row["answer"])["results"]
    }
    rows = lines(tmp_path / "out" / "train.jsonl")
    assert all(scores[row["query_id"], row["doc_id"]] == row["revised_score"] for row in rows)
