"""Columns that have names go by them in every reader of grades and runs, and what is not read is named."""

import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from benchmark.runs.files import read_qrels, read_run
from config.env import ROOT
from corpus.errors import OptionWouldHelp
from corpus.models import Judgment, Label, Pair
from tests.called import call
from tests.corpus.importing.file_contents import parquet_of, workbook_of
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.imported_files import import_files

# Ids that both sides have: what is read in the wrong place is read all the same.
GRADES = [("1", "2", "1"), ("2", "1", "0"), ("1", "3", "2")]
RANKED = [("1", "2", "3.5"), ("1", "3", "2.5"), ("2", "1", "1.5")]
NAMES = {
    "query": ("query_id", "qid", "query-id", "queryId", "topic", "Query ID", "search_id", "query"),
    "document": ("doc_id", "docid", "corpus-id", "docno", "Document ID", "pid", "document", "passage"),
    "grade": ("grade", "label", "relevance", "rel", "Judgment", "rating", "relevance_score", "relevancy"),
}
GIVEN = {"1": {"2": 1, "3": 2}, "2": {"1": 0}}


def write(folder: Path, name: str, header: list[str], rows: list[list[str]], delimiter: str) -> Path:
    path = folder / name
    path.write_text("".join(delimiter.join(cells) + "\n" for cells in [header, *rows]))
    return path


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", " "])
def test_qrels_in_any_order_of_columns_under_any_of_their_names(tmp_path, delimiter):
    for names in zip(*NAMES.values(), strict=True):
        if delimiter == " " and any(" " in name for name in names):
            continue
        for order in permutations(range(3)):
            rows = [[row[place] for place in order] for row in GRADES]
            path = write(tmp_path, "x.txt", [names[place] for place in order], rows, delimiter)
            assert read_qrels(path) == GIVEN, (names, order)


def test_qrels_of_other_forms_in_any_order_of_columns(tmp_path):
    for order in permutations(range(3)):
        names = [("query_id", "doc_id", "grade")[place] for place in order]
        rows = [{name: row[place] for name, place in zip(names, order, strict=True)} for row in GRADES]
        (tmp_path / "x.parquet").write_bytes(parquet_of(*rows))
        (tmp_path / "x.xlsx").write_bytes(workbook_of(names, *(list(row.values()) for row in rows)))
        (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for name in ("x.parquet", "x.xlsx", "x.jsonl"):
            assert read_qrels(tmp_path / name) == GIVEN, (name, order)


@pytest.mark.parametrize("delimiter", ["\t", ",", " "])
def test_runs_in_any_order_of_columns(tmp_path, delimiter):
    given = {"1": {"2": 3.5, "3": 2.5}, "2": {"1": 1.5}}
    for order in permutations(range(3)):
        names = [("query_id", "docid", "score")[place] for place in order]
        rows = [[row[place] for place in order] for row in RANKED]
        assert read_run(write(tmp_path, "r.txt", names, rows, delimiter)) == given, order
    ranked = write(tmp_path, "r.txt", ["rank", "qid", "docid"], [["1", "1", "2"], ["2", "1", "3"]], delimiter)
    assert list(read_run(ranked)["1"]) == ["2", "3"]


def test_without_names_the_places_tell(tmp_path):
    for header in ("", "a\tb\tc\n", "von\tnach\tlabelled\n"):
        (tmp_path / "x").write_text(header + "1\t2\t1\n2\t1\t0\n1\t3\t2\n")
        assert read_qrels(tmp_path / "x") == GIVEN
    (tmp_path / "x").write_text("a\tb\tlabel\n1\t2\t1\n")
    with pytest.raises(OptionWouldHelp, match=r'"query_id" among a, b, label: map "a"') as refused:
        read_qrels(tmp_path / "x")
    assert refused.value.problems[0][0] == "column"
    fields = {"b": "query_id", "a": "doc_id"}
    assert read_qrels(tmp_path / "x", fields) == {"2": {"1": 1}}


def test_evaluate_says_what_it_does_not_read_and_shows_every_measure_of_every_query(tmp_path):
    header = ["doc_id", "note", "query_id", "grade"]
    qrels = write(tmp_path, "q.tsv", header, [[d, "x", q, g] for q, d, g in GRADES], "\t")
    (tmp_path / "r.run").write_text("1 Q0 3 1 2.0 x\n1 Q0 2 2 1.0 x\n2 Q0 1 1 3.0 x\n")
    asked = ("evaluate", "--qrels", qrels, "--run", tmp_path / "r.run", "--measures", "nDCG@10 P@1", "--per-query")
    done = call(*asked)
    assert done.out.splitlines()[1:] == [
        "  nDCG@10            0.5000", "  P@1                0.5000", "  query nDCG@10    P@1",
        "  1      1.0000 1.0000", "  2      0.0000 0.0000",
    ]  # fmt: skip
    assert f"{qrels}: " in done.err and ": note (" in done.err


@pytest.mark.django_db
def test_judgments_settle_the_pairs_that_their_header_names(tmp_path):
    books = make_collection("books", grades=2)
    queries = {name: make_query(books, external_id=name) for name in ("1", "2", "3")}
    documents = {name: make_document(books, external_id=name) for name in ("1", "2", "3")}
    for query in queries.values():
        for document in documents.values():
            make_pair(books, query, document)
    path = write(tmp_path, "j.tsv", ["doc_id", "grade", "query_id"], [[d, g, q] for q, d, g in GRADES], "\t")
    assert call("import_judgments", "books", "--assessor", "alice", "--kind", "human", path).code == 0
    rows = Label.objects.values_list("pair__query__external_id", "pair__document__external_id", "grade")
    assert sorted((query, document, str(grade)) for query, document, grade in rows) == sorted(GRADES)


@pytest.mark.django_db
def test_the_import_names_columns_that_are_not_read_and_grades_of_several_people(tmp_path):
    path = write(
        tmp_path, "x.csv", ["query", "document", "annotator_1", "annotator_2", "source"],
        [["what is tea", "Tea is a drink", "1", "0", "web"], ["what is tea", "Water boils", "0", "", "web"]], ",",
    )  # fmt: skip
    report, said = import_files("books", path)
    assert list(report["unused_columns"][str(path)]) == ["source"] and ": source (" in said
    rows = Judgment.objects.values_list("assessor__name", "assessor__kind", "pair__document__text", "grade")
    assert sorted(rows) == [
        ("annotator_1", "human-import", "Tea is a drink", 1), ("annotator_1", "human-import", "Water boils", 0),
        ("annotator_2", "human-import", "Tea is a drink", 0),
    ]  # fmt: skip
    assert Pair.objects.count() == 2


@pytest.mark.django_db
def test_a_label_without_its_document_is_refused_with_the_option_that_helps(tmp_path):
    rows = [["what is tea", "Tea is a drink", "1"], ["what is tea", "Water boils", "0"]]
    path = write(tmp_path, "x.csv", ["query", "chunk", "label"], rows, ",")
    assert 'map "chunk" to "text"' in import_files("books", path)[1]
    report, _said = import_files("books", path, "--column", "chunk=text")
    assert report["new"] == {"documents": 2, "queries": 1, "pairs": 2, "judgments": 2}


def test_names_of_files_hold_any_letter_in_a_locale_of_ascii_alone(tmp_path):
    (tmp_path / "straße.tsv").write_text("doc_id\tquery_id\tgrade\n2\t1\t1\n")
    (tmp_path / "r.run").write_text("1 Q0 2 1 1.0 x\n")
    asked = [sys.executable, str(ROOT / "manage.py"), "evaluate", "--qrels", "straße.tsv", "--run", "missing-ß.run"]
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    found = subprocess.run([*asked, "--measures", "P@1"], cwd=tmp_path, env=environment, capture_output=True)
    assert found.returncode == 2
    assert found.stderr.decode().startswith("missing-ß.run: ") and found.stderr.endswith(b"no such file\n")
