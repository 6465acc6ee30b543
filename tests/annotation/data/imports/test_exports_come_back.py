"""Every export of training sets, imported into a new collection, has the same pairs, grades and texts again."""

import json
from typing import Any

import pytest

from corpus.models import Collection, Judgment, Label, Pair
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
