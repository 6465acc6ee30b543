"""Labels made of all grades: majority, Dawid-Skene and the resolved ones, each with its posterior."""

import csv
import json

import numpy as np
import pytest

from annotation.agreement.aggregates import fit_matrix
from annotation.agreement.grade_matrix import load_grade_matrix
from annotation.exports.label_sources.aggregated_labels import aggregate_labels
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing.grades import read_grades
from corpus.models import ExportedLabels, Judgment, Label, Pair
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection
from tests.judged_books import export, lines, make_books

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """Five judges' votes on 30 pairs; three people who grade some of them, and disagree on one."""
    books = make_books()
    Label.objects.filter(pair__collection=books, grade=2).update(grade=1)  # as the votes say
    people = [make_assessor(books, name, "person") for name in ("ann", "ben", "eve")]
    pairs = list(Pair.objects.filter(collection=books).order_by("pk"))
    for place, pair in enumerate(pairs[:12]):
        for who, one in enumerate(people):
            make_judgment(pair, one, (1 if place % 3 == 0 else 0) if (place, who) != (1, 0) else 1)
    return books


def write(books, folder, name="csv", **options):
    write_snapshot(create_snapshot(books, ExportOptions(format=name, **options), folder))
    return json.loads((folder / "manifest.json").read_text())


def rows_of(folder):
    return list(csv.DictReader((folder / "labels.csv").read_text().splitlines()))


def test_csv_has_the_posterior_of_dawid_skene_as_the_agreement_has_it(books, tmp_path):
    manifest = write(books, tmp_path / "out", aggregate="dawid-skene")
    rows = rows_of(tmp_path / "out")
    assert list(rows[0]) == ["query_id", "doc_id", "grade", "origin", "posterior"]
    matrix = load_grade_matrix(books)
    found = fit_matrix(matrix, tuple(one.name for one in matrix.assessors))
    ids = {
        (p.query.external_id, p.document.external_id): p.pk for p in Pair.objects.select_related("query", "document")
    }
    place = {int(pair): at for at, pair in enumerate(found.pairs)}
    assert len(rows) == len(found.pairs) == 30
    for row in rows:
        at = place[ids[row["query_id"], row["doc_id"]]]
        assert int(row["grade"]) == found.labels[at]
        assert float(row["posterior"]) == pytest.approx(found.probability[at], abs=1e-6)
    assert {row["origin"] for row in rows} == {"dawid-skene"}
    assert manifest["aggregate"]["by"] == "dawid-skene"
    described = manifest["aggregate"]["of"]["books"]
    assert described["posterior"] is None and set(described["assessors"]) >= {"ann", "ben", "eve", "judge-1"}

    assert write(books, tmp_path / "again", aggregate="dawid-skene") == manifest
    grades = list(read_grades(FileSource(tmp_path / "out" / "labels.csv"), 3))
    assert len(grades) == 30 and not any(row.problem for row in grades)


def test_the_majority_is_the_plain_one_and_ties_are_left_out(books, tmp_path):
    pair = Pair.objects.filter(collection=books).order_by("pk").last()
    for name in ("ann", "ben", "eve"):  # three relevant against four others and one: now four to four
        make_judgment(pair, make_assessor(books, name, "person"), 1)
    manifest = write(books, tmp_path / "out", aggregate="majority")
    matrix, untied = load_grade_matrix(books), 0
    for at in range(len(matrix.pairs)):
        _grades, counts = np.unique(matrix.grades[:, at][matrix.grades[:, at] >= 0], return_counts=True)
        untied += (counts == counts.max()).sum() == 1
    assert untied == 29 == len(rows_of(tmp_path / "out"))
    assert manifest["aggregate"]["of"]["books"]["ties"] == 1
    held = {grade for row in ExportedLabels.objects.all() for grade in row.grades}
    assert held == {None}, "lineage does not note that their labels changed"


def test_resolved_labels_are_those_of_the_collection_with_the_posterior_of_their_grade(books, tmp_path):
    plain = write(books, tmp_path / "plain")
    ExportedLabels.objects.all().delete()
    made = write(books, tmp_path / "out", aggregate="resolved")
    assert {grade for row in ExportedLabels.objects.all() for grade in row.grades} == {0, 1}
    rows = rows_of(tmp_path / "out")
    assert [{key: row[key] for key in row if key != "posterior"} for row in rows] == rows_of(tmp_path / "plain")
    assert "aggregate" not in plain and made["aggregate"]["by"] == "resolved"
    wrong = Label.objects.filter(pair__collection=books, grade=0).first()
    Label.objects.filter(pk=wrong.pk).update(grade=3)  # a grade that nobody gave has no probability
    write(books, tmp_path / "more", aggregate="resolved")
    blank = [row for row in rows_of(tmp_path / "more") if row["posterior"] == ""]
    assert [row["grade"] for row in blank] == ["3"]


def test_training_sets_take_the_aggregate_and_say_the_posterior(books, tmp_path):
    manifest = export(books, "prism", tmp_path / "out", teacher="labels", aggregate="dawid-skene")
    rows = [row for split in ("train", "dev") for row in lines(tmp_path / "out" / f"{split}.jsonl")]
    assert {row["origin"] for row in rows} == {"dawid-skene"} and all(0 < row["posterior"] <= 1 for row in rows)
    assert manifest["aggregate"]["by"] == manifest["options"]["aggregate"] == "dawid-skene"
    plain = export(books, "prism", tmp_path / "plain", teacher="labels")
    assert "posterior" not in lines(tmp_path / "plain" / "train.jsonl")[0] and "aggregate" not in plain
    pyarrow = pytest.importorskip("pyarrow.parquet")
    export(books, "parquet", tmp_path / "parquet", aggregate="majority")
    table = pyarrow.read_table(next((tmp_path / "parquet" / "data").glob("train-*")))
    assert table.column_names[-1] == "posterior" and table["posterior"].null_count == 0


def test_the_grades_may_be_those_of_some_assessors_and_without_a_usable_estimate_there_is_none(books, tmp_path):
    """People use the whole scale while judges say yes or no: all of them together make no usable estimate."""
    for judgment in Judgment.objects.filter(assessor__kind="person", grade=1):
        make_judgment(judgment.pair, judgment.assessor, 3, supersedes=judgment)
    with pytest.raises(BadInput, match="gave grade"):
        write(books, tmp_path / "none", aggregate="dawid-skene")
    manifest = write(books, tmp_path / "out", aggregate="dawid-skene", assessors=["people"])
    described = manifest["aggregate"]["of"]["books"]
    assert (described["assessors"], described["graded"]) == (["ann", "ben", "eve"], 12)
    assert {row["grade"] for row in rows_of(tmp_path / "out")} == {"0", "3"}
    named = ["judge-1", "judge-2", "judge-3"]
    manifest = export(books, "beir", tmp_path / "set", aggregate="majority", assessors=tuple(named))
    assert manifest["aggregate"]["of"]["books"]["assessors"] == named
    with pytest.raises(BadInput, match="named nobody"):
        write(books, tmp_path / "no", aggregate="majority", assessors=["nobody"])
    with pytest.raises(BadInput, match="choose one"):
        write(books, tmp_path / "no", assessors=["people"])

    birds = make_collection("birds")
    for how in ("dawid-skene", "majority"):
        with pytest.raises(BadInput, match="birds") as refused:
            aggregate_labels(birds, how)
        assert [name for name, _text in refused.value.problems] == ["aggregate"]
    assert aggregate_labels(birds, "resolved").pairs == []
