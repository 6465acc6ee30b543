"""Preferences with TRL's columns, and grades from strengths: what is in them, and what is left out and counted."""

import pytest

from actions.errors import BadOption
from annotation.models import Membership
from annotation.models.comparisons import Comparison, ComparisonSet
from corpus.errors import BadInput
from corpus.models import Assessor, Document, ExportRecord, Label
from tests.comparing_scene import draw, make_relevant, prefer
from tests.factories import client_of, make_collection, make_member
from tests.judged_books import export, lines

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    return make_collection("books", grades=3)


@pytest.fixture
def people(books):
    return [make_member(books, name).assessor for name in ("alice", "bob", "charlie")]


@pytest.fixture
def drawn(books):
    """One comparison of each of six queries, in the order of the queries."""
    make_relevant(books, queries=6, documents=2)
    return draw(books, people=3)


def comparison_of(drawn: ComparisonSet, query: int) -> Comparison:
    return drawn.comparisons.get(first__query__external_id=f"q{query}")


def vote(drawn: ComparisonSet, query: int, people: list[Assessor], *outcomes: str) -> Comparison:
    row = comparison_of(drawn, query)
    for assessor, outcome in zip(people, outcomes, strict=False):
        prefer(row, assessor, outcome)
    return row


def test_a_line_has_trls_columns_with_ids_and_votes(books, drawn, people, tmp_path):
    row = vote(drawn, 0, people, "second", "second", "first")
    manifest = export(books, "preferences", tmp_path / "out", split=1)
    chosen, rejected = row.second.document, row.first.document
    assert lines(tmp_path / "out" / "train.jsonl") == [
        {
            "prompt": "Which order does dictionary 0 have?",
            "chosen": chosen.text,
            "rejected": rejected.text,
            "query_id": "q0",
            "chosen_id": chosen.external_id, "rejected_id": rejected.external_id,
            "chosen_votes": 2, "rejected_votes": 1, "equal_votes": 0, "both_bad_votes": 0,
        }
    ]  # fmt: skip
    assert (manifest["format"], manifest["counts"]["rows"], manifest["counts"]["queries"]) == ("preferences", 1, 1)
    assert not ExportRecord.objects.exists(), "they lock no judgment"


def test_ties_both_bad_and_texts_with_a_newer_version_are_left_out_and_counted(books, drawn, people, tmp_path):
    vote(drawn, 1, people, "equal", "equal")
    vote(drawn, 2, people, "both_bad")
    vote(drawn, 3, people, "first", "second")
    with pytest.raises(BadInput, match="most votes prefer"):
        export(books, "preferences", tmp_path / "none", split=1)
    assert not (tmp_path / "none").exists()
    older = vote(drawn, 0, people, "first")
    counts = {"answers_of": "resolved", "compared": 4, "preferred": 1, "equal": 1, "both_bad": 1, "no_majority": 1}
    assert export(books, "preferences", tmp_path / "out", split=1)["comparisons"] == counts
    assert len(lines(tmp_path / "out" / "train.jsonl")) == 1
    vote(drawn, 4, people, "first")
    Document.objects.filter(pk=older.first.document_id).update(is_current=False)
    manifest = export(books, "preferences", tmp_path / "newer", split=1)
    assert [line["query_id"] for line in lines(tmp_path / "newer" / "train.jsonl")] == ["q4"]
    assert manifest["counts"]["left_out"] == {"a text of it has a newer version": 1}


def test_people_or_judges_alone_can_be_taken(books, drawn, people, tmp_path):
    judge = Assessor.objects.create(collection=books, kind="judge", name="judge-1")
    row = vote(drawn, 0, [people[0], judge], "first", "second")
    prefer(comparison_of(drawn, 1), judge, "first")
    counts = {}
    for labels in ("resolved", "people", "machine"):
        export(books, "preferences", tmp_path / labels, split=1, labels=labels)
        counts[labels] = lines(tmp_path / labels / "train.jsonl")
    assert [len(counts[labels]) for labels in ("resolved", "people", "machine")] == [2, 1, 2]
    assert counts["people"][0]["chosen_id"] == row.first.document.external_id
    assert counts["machine"][0]["chosen_id"] == row.second.document.external_id


def test_queries_are_split_as_in_any_training_set(books, drawn, people, tmp_path):
    for query in range(6):
        vote(drawn, query, people, "first")
    manifest = export(books, "preferences", tmp_path / "out", split=0.5, near_duplicates=0)
    train, dev = (lines(tmp_path / "out" / f"{side}.jsonl") for side in ("train", "dev"))
    assert (len(train), len(dev)) == (3, 3)
    assert not {line["query_id"] for line in train} & {line["query_id"] for line in dev}
    assert manifest["counts"]["splits"]["dev"]["rows"] == 3


def test_grades_come_from_strengths_and_labels_stay(books, drawn, people, tmp_path):
    row = vote(drawn, 0, people, "first", "first", "first")
    before = list(Label.objects.order_by("pk").values_list("grade", "updated_at"))
    manifest = export(books, "preference-grades", tmp_path / "out", thresholds=(-9, 0, 9))
    grades = {document: 2 if document == row.first.document.external_id else 1 for document in ("d0-0", "d0-1")}
    text = "".join(f"q0 0 {document} {grade}\n" for document, grade in grades.items())
    assert (tmp_path / "out" / "qrels.txt").read_text() == text
    assert (manifest["grades_from"]["binned_by"], manifest["grades_from"]["thresholds"]) == ("thresholds", [-9, 0, 9])
    assert manifest["counts"]["grades"] == {"1": 1, "2": 1}
    assert list(Label.objects.order_by("pk").values_list("grade", "updated_at")) == before


def test_without_thresholds_grades_have_equally_many_documents(books, drawn, people, tmp_path):
    vote(drawn, 0, people, "first", "first", "first")
    vote(drawn, 1, people, "first", "first", "second")
    manifest = export(books, "preference-grades", tmp_path / "out")
    assert manifest["counts"]["grades"] == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert manifest["grades_from"]["binned_by"] == "quantiles"
    with pytest.raises(BadOption, match="from 1 to 3"):
        export(books, "preference-grades", tmp_path / "no", thresholds=(0,))


def test_the_page_makes_both_without_a_label(books, drawn, people):
    vote(drawn, 0, people, "first")
    Label.objects.all().delete()
    Membership.objects.filter(assessor=people[0]).update(role=3)
    admin = client_of(Membership.objects.get(assessor=people[0]))
    form = {"teacher": "labels", "split": 1, "seed": 0, "labels": "resolved", "shape": "pair", "preset": "paper",
            "ranks": "11-100", "balance_entropy": "filled"}  # fmt: skip
    for name in ("preferences", "preference-grades"):
        page = admin.get(f"/c/books/exports/?format={name}").content.decode()
        assert f'value="{name}" checked' in " ".join(page.split())
        response = admin.post("/c/books/exports/preview/", form | {"format": name}, headers={"HX-Request": "true"})
        assert response.status_code == 200, response.content.decode()
