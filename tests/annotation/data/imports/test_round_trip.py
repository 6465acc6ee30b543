"""What a collection exports of its labels, a new collection imports, and then has the same labels."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from corpus.labels import rebuild_labels
from corpus.models import Assessor, Judgment, Label
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_document, make_item, make_pair, make_query
from tests.imported_files import import_files

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """Labels of every origin: people, an adjudicator against them, policies, an import; ids that a sheet would run."""
    books = make_collection("books", grades=3)
    people = [make_assessor(books, name) for name in ("alice", "bob", "charlie")]
    policy = make_assessor(books, "debate+ensemble", Assessor.Kind.POLICY)
    adjudicator = make_assessor(books, "llm-adjudicator", Assessor.Kind.POLICY)
    elsewhere = make_assessor(books, "dora", Assessor.Kind.HUMAN_IMPORT)
    reference = make_assessor(books, "qrels", Assessor.Kind.REFERENCE)
    for number in range(6):
        query = make_query(books, f"What is number {number}?", external_id=f"q{number}")
        for place in range(4):
            name = "=d0" if not number and not place else f"d{number}-{place}"
            text = f"Document {number} {place} says something of its own: {number * 17 + place}."
            pair = make_pair(books, query, make_document(books, text=text, external_id=name))
            make_judgment(pair, policy, (number + place) % 2)
            make_judgment(pair, reference, 1)
            if place == 0:
                item = make_item(pair, overlap=3, taken=3, done=3, state="settled")
                for person, grade in zip(people, (3, 3, number % 3), strict=True):
                    Judgment.objects.create(pair=pair, assessor=person, item=item, step="final", grade=grade)
                if number == 1:
                    Judgment.objects.create(pair=pair, assessor=people[2], item=item, step="adjudication", grade=0)
            elif place == 1:
                make_judgment(pair, adjudicator, 1)
            elif place == 2 and number % 2:
                make_judgment(pair, elsewhere, 2)
    rebuild_labels(books)
    return books


def labels_of(name: str, field: str = "grade") -> dict[tuple[str, str], object]:
    rows = Label.objects.filter(pair__collection__name=name).values_list(
        "pair__query__external_id", "pair__document__external_id", field
    )
    return {(query, document): said for query, document, said in rows}


def export(form: str, folder: Path, *options: str) -> Path:
    call_command("export", "books", f"--format={form}", f"--out={folder}", *options, stdout=StringIO())
    return folder


def test_every_export_of_labels_gives_the_same_labels_again(books, tmp_path):
    wanted = labels_of("books")
    assert len(wanted) == 24 and set(wanted.values()) == {0, 1, 2, 3}
    beir = export("beir", tmp_path / "beir")
    mteb = export("mteb", tmp_path / "mteb")
    texts = [f"--corpus={beir / 'corpus.jsonl'}", f"--queries={beir / 'queries.jsonl'}"]
    qrels = export("qrels", tmp_path / "qrels") / "qrels.txt"
    csv = export("csv", tmp_path / "csv") / "labels.csv"
    judgments = export("judgments", tmp_path / "judgments") / "judgments.jsonl"
    imports: dict[str, list[object]] = {
        "beir": [beir, "--graded-by=human"],
        "mteb": [mteb, "--graded-by=human"],
        "qrels": [qrels, *texts, "--graded-by=human"],
        "csv": [csv, *texts, "--graded-by=human"],
        "judgments": [judgments, *texts],
    }
    for name, arguments in imports.items():
        report, _said = import_files(name, *arguments)
        assert labels_of(name) == wanted, name
        assert (report["documents"], report["queries"], report["labels_changed"]) == (24, 6, 24), name
    assert labels_of("judgments", "origin") == labels_of("books", "origin")
    kinds = Assessor.objects.filter(collection__name="judgments").values_list("kind", "name")
    assert set(kinds) == {
        ("human-import", "alice"), ("human-import", "bob"), ("human-import", "charlie"), ("human-import", "dora"),
        ("policy", "debate+ensemble"), ("policy", "llm-adjudicator"), ("reference", "qrels"),
    }  # fmt: skip

    report, _said = import_files("unsaid", beir)  # without a word on whose they are
    assert (report["judgments"], report["labels_changed"], labels_of("unsaid")) == (24, 0, {})
    grades = Judgment.objects.filter(pair__collection__name="unsaid", assessor__kind="reference")
    rows = grades.values_list("pair__query__external_id", "pair__document__external_id", "grade")
    assert {(query, document): grade for query, document, grade in rows} == wanted, "they measure, and settle nothing"


def test_the_same_judgments_again_change_nothing_and_others_are_refused(books, tmp_path):
    beir = export("beir", tmp_path / "beir")
    path = export("judgments", tmp_path / "judgments") / "judgments.jsonl"
    import_files("copy", path, f"--corpus={beir / 'corpus.jsonl'}", f"--queries={beir / 'queries.jsonl'}")
    before = Judgment.objects.count()
    again, _said = import_files("copy", path)
    assert again["changed"] is False and Judgment.objects.count() == before
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    alice = next(row for row in rows if row["assessor"] == "alice")
    path.write_text(json.dumps({**alice, "grade": 1}) + "\n")
    report, said = import_files("copy", path)
    assert not report and f"{path}, line 1: grade 1," in said and "has 3 of this" in said
    assert Judgment.objects.count() == before
