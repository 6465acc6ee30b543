"""Every export, imported into a new collection, has the same pairs, labels, grades and texts again."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from corpus.labels import rebuild_labels
from corpus.models import Assessor, Collection, Judgment, Label, Pair
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_document, make_item, make_pair, make_query
from tests.imported_files import import_files
from tests.judged_books import export, make_books, write_targets

pytestmark = pytest.mark.django_db
# What the form keeps of a grade and of a document: a label of two values, and title and text as one.
TWO_VALUES = ("prism", "sentence-transformers", "trl", "rtriever", "flagembedding", "ms-swift", "ms-swift-embedding",
              "tevatron")  # fmt: skip
ONE_TEXT = {*TWO_VALUES} - {"tevatron"}
SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "prism": ("prism", {"teacher": "votes"}),
    "prism, labels": ("prism", {"teacher": "labels"}),
    "pair": ("sentence-transformers", {"shape": "pair"}),
    "pair, scores": ("sentence-transformers", {"shape": "pair", "teacher": "votes"}),
    "triplet": ("sentence-transformers", {"shape": "triplet"}),
    "n-tuple": ("sentence-transformers", {"shape": "n-tuple", "negatives": 2}),
    "list": ("sentence-transformers", {"shape": "list"}),
    "list, scores": ("sentence-transformers", {"shape": "list", "teacher": "votes"}),
    "parquet": ("parquet", {}),
    "trl": ("trl", {}),
    "rtriever": ("rtriever", {}),
    "flagembedding": ("flagembedding", {}),
    "flagembedding, scores": ("flagembedding", {"teacher": "votes"}),
    "ms-swift": ("ms-swift", {}),
    "ms-swift-embedding": ("ms-swift-embedding", {}),
    "tevatron": ("tevatron", {}),
}


def pairs_of(collection: str, *, one_text: bool, two_values: bool) -> dict[tuple[str, str], int | None]:
    """Texts of query and document, and the grade that a label or a reference gives."""
    grades: dict[tuple[str, str], int | None] = {}
    for pair in Pair.objects.filter(collection__name=collection).select_related("query", "document"):
        row = Label.objects.filter(pair=pair).first() or Judgment.objects.filter(pair=pair).first()
        document = pair.document
        text = f"{document.title}\n{document.text}" if document.title and one_text else document.text
        grade = None if row is None else row.grade
        grades[pair.query.text, text] = min(grade, 1) if two_values and grade is not None else grade
    return grades


def scores_of(collection: str) -> set[tuple[str, float]]:
    rows = Pair.objects.filter(collection__name=collection).values_list("query__text", "teacher_score")
    return {(query, round(score, 6)) for query, score in rows if score is not None}


@pytest.mark.parametrize("case", SETS)
def test_a_training_set_comes_back_with_its_pairs_grades_and_texts(case, tmp_path):
    name, options = SETS[case]
    books = make_books(queries=3)
    if name in ("prism", "trl"):
        write_targets(books)
    export(books, name, tmp_path / "out", split=1, near_duplicates=0, **options)
    (file,) = [one for one in (tmp_path / "out").rglob("*") if one.suffix in (".jsonl", ".parquet")]
    report, told = import_files("back", file)
    how = {"one_text": name in ONE_TEXT, "two_values": name in TWO_VALUES}
    wanted, found = pairs_of("books", **how), pairs_of("back", **how)
    if case.endswith("scores") and name == "sentence-transformers":
        assert found.keys() == wanted.keys() and set(found.values()) == {None}, "scores stand in place of labels"
    else:
        assert found == wanted
    assert (report["documents"], report["queries"], report["pairs"]) == (9, 3, 9)
    if options.get("teacher") == "votes":
        assert {score for _query, score in scores_of("back")} == {0.8, 0.2}
    if name in ("prism", "parquet", "rtriever", "tevatron"):
        ids = Pair.objects.filter(collection__name="back").values_list("query__external_id", "document__external_id")
        assert set(ids) == {(f"q{q}", f"d{q}-{d}") for q in range(3) for d in range(3)}
    assert "JSON" not in told and not any("{" in text for pair in found for text in pair)


@pytest.mark.parametrize("name", ["prism", "flagembedding", "parquet"])
def test_train_and_dev_come_back_together_and_one_of_them_may_be_left_out(name, tmp_path):
    write_targets(make_books(queries=6))
    options = {"teacher": "labels"} if name == "prism" else {}
    export(Collection.objects.get(), name, tmp_path / "out", split=0.5, near_duplicates=0, **options)
    files = sorted(one.name for one in (tmp_path / "out").rglob("*") if one.suffix in (".jsonl", ".parquet"))
    assert len(files) == 2 and files[0].startswith("dev")
    how = {"one_text": name in ONE_TEXT, "two_values": name in TWO_VALUES}
    report, told = import_files("back", tmp_path / "out")
    assert report["pairs"] == 18 and pairs_of("back", **how) == pairs_of("books", **how), told
    report, _told = import_files("train", tmp_path / "out", "--leave-out", files[0])
    assert report["pairs"] == 9 and pairs_of("train", **how).items() < pairs_of("books", **how).items()
    assert not import_files("none", tmp_path / "out", "--leave-out", "other.jsonl")[0]
    assert not Collection.objects.filter(name="none").exists()


def test_documents_that_nobody_judged_come_back_without_a_grade(tmp_path):
    books = make_books(queries=2)
    Label.objects.filter(pair__document__external_id="d0-2").delete()
    (tmp_path / "a.run").write_text("q0 Q0 d0-2 1 9.0 system\n")
    for name in ("rtriever", "prism", "parquet"):
        options = {"teacher": "labels"} if name == "prism" else {}
        options |= {"run": str(tmp_path / "a.run"), "ranks": "1-5"}
        export(books, name, tmp_path / name, split=1, near_duplicates=0, **options)
        (file,) = [one for one in (tmp_path / name).rglob("*") if one.suffix in (".jsonl", ".parquet")]
        import_files(f"back-{name}", file)
        graded = Judgment.objects.filter(pair__collection__name=f"back-{name}")
        assert not graded.filter(pair__document__external_id="d0-2").exists(), name
        assert graded.count() == 5, name


def test_relevant_without_a_number_is_the_lowest_relevant_grade_of_the_collection(tmp_path):
    Collection.objects.create(name="strict", grades=3, relevant_from=2)
    (tmp_path / "x.jsonl").write_text('{"query": "what is tea", "pos": ["Tea is a drink"], "neg": ["Water boils"]}\n')
    import_files("strict", tmp_path / "x.jsonl")
    assert set(Judgment.objects.values_list("grade", flat=True)) == {2, 0}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"query_id": "q", "doc_id": "d", "assessor": "a", "grade": 1, "start": 0, "end": 3, "text": "T"},
         "marked evidence"),
        ({"query_id": "q", "doc_id": "d", "round": 1, "side": "for", "judge": "j", "verdict": 1, "reason": "r",
          "quotes": [], "found": []}, "debates"),
        ({"query_id": "q", "aspect_id": "1", "text": "t", "rationale": "r", "importance": 3, "doc_ids": ["d"]},
         "aspects"),
    ],
)  # fmt: skip
def test_an_export_that_holds_no_collection_is_refused_by_its_name(line, what, tmp_path):
    (tmp_path / "x.jsonl").write_text(json.dumps(line) + "\n")
    report, said = import_files("back", tmp_path / "x.jsonl")
    assert not report and "line 1: " in said and what in said


@pytest.fixture
def labelled():
    """Labels of every origin: people, an adjudicator against them, policies, an import; ids that a sheet would run."""
    labelled = make_collection("labelled", grades=3)
    people = [make_assessor(labelled, name) for name in ("alice", "bob", "charlie")]
    policy = make_assessor(labelled, "debate+ensemble", Assessor.Kind.POLICY)
    adjudicator = make_assessor(labelled, "llm-adjudicator", Assessor.Kind.POLICY)
    elsewhere = make_assessor(labelled, "dora", Assessor.Kind.HUMAN_IMPORT)
    reference = make_assessor(labelled, "qrels", Assessor.Kind.REFERENCE)
    for number in range(6):
        query = make_query(labelled, f"What is number {number}?", external_id=f"q{number}")
        for place in range(4):
            name = "=d0" if not number and not place else f"d{number}-{place}"
            text = f"Document {number} {place} says something of its own: {number * 17 + place}."
            pair = make_pair(labelled, query, make_document(labelled, text=text, external_id=name))
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
    rebuild_labels(labelled)
    return labelled


def labels_of(name: str, field: str = "grade") -> dict[tuple[str, str], object]:
    rows = Label.objects.filter(pair__collection__name=name).values_list(
        "pair__query__external_id", "pair__document__external_id", field
    )
    return {(query, document): said for query, document, said in rows}


def export_labels(form: str, folder: Path, *options: str) -> Path:
    call_command("export", "labelled", f"--format={form}", f"--out={folder}", *options, stdout=StringIO())
    return folder


def test_every_export_of_labels_gives_the_same_labels_again(labelled, tmp_path):
    wanted = labels_of("labelled")
    assert len(wanted) == 24 and set(wanted.values()) == {0, 1, 2, 3}
    beir = export_labels("beir", tmp_path / "beir")
    mteb = export_labels("mteb", tmp_path / "mteb")
    texts = [f"--corpus={beir / 'corpus.jsonl'}", f"--queries={beir / 'queries.jsonl'}"]
    qrels = export_labels("qrels", tmp_path / "qrels") / "qrels.txt"
    csv = export_labels("csv", tmp_path / "csv") / "labels.csv"
    judgments = export_labels("judgments", tmp_path / "judgments") / "judgments.jsonl"
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
    assert labels_of("judgments", "origin") == labels_of("labelled", "origin")
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


def test_the_same_judgments_again_change_nothing_and_others_are_refused(labelled, tmp_path):
    beir = export_labels("beir", tmp_path / "beir")
    path = export_labels("judgments", tmp_path / "judgments") / "judgments.jsonl"
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
