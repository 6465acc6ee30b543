"""Exports: the contract's files, the same bytes again, and a manifest that says what they hold."""

import csv
import json
import resource
from hashlib import sha256
from io import StringIO
from pathlib import Path

import pytest
from django.db import connection

from annotation.exports.files import ExportFiles
from annotation.exports.formats import FORMATS
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models.comparisons import Comparison, ComparisonSet
from annotation.models.snapshots import Snapshot
from charts.cells import csv_cell
from corpus.errors import BadInput
from corpus.models import Document, ExportRecord
from corpus.models.aspects import Aspect
from corpus.rubric import HELPFULNESS, SUFFICIENCY
from tests.called import call
from tests.comparing_scene import prefer
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment, make_label, make_turn, make_votes
from tests.factories import make_collection, make_document, make_pair, make_query

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """Three labelled pairs and one without a label; ids whose order in C is not that of a dictionary."""
    books = make_collection("books", grades=3)
    first, second = make_query(books, external_id="q10"), make_query(books, external_id="Q2")
    documents = [make_document(books, external_id=name) for name in ("b", "B", "a,1")]
    pairs = [make_pair(books, first, document) for document in documents]
    last = make_pair(books, second, documents[0])
    make_label(pairs[0], 2, "adjudicator")
    make_label(pairs[1], 0, "debate+ensemble")
    make_label(last, 1, "people")
    return books


def pair_of(collection, document, query="q10"):
    return collection.pair_set.get(query__external_id=query, document__external_id=document)


def export(collection, name, folder, **options):
    """Make a snapshot; its file's text."""
    snapshot = write_snapshot(create_snapshot(collection, ExportOptions(format=name, **options), folder))
    assert Path(snapshot.folder) == folder
    return (folder / FORMATS[name].file).read_text()


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_qrels_have_four_columns_in_the_order_of_bytes_and_load_in_ir_measures(books, tmp_path):
    import ir_measures

    assert export(books, "qrels", tmp_path / "out") == "Q2 0 b 1\nq10 0 B 0\nq10 0 b 2\n"
    loaded = ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.txt"))
    assert [tuple(row)[:3] for row in loaded] == [("Q2", "b", 1), ("q10", "B", 0), ("q10", "b", 2)]

    old = Document.objects.get(collection=books, external_id="B")
    Document.objects.filter(pk=old.pk).update(is_current=False)
    newer = make_document(books, "Another text.", external_id="B", version=2)
    make_label(make_pair(books, pair_of(books, "b").query, newer), 3, "people")
    text = export(books, "qrels", tmp_path / "newer")
    assert text == "Q2 0 b 1\nq10 0 B 3\nq10 0 b 2\n", "pairs of an older text stay out"


def test_csv_names_the_origin_of_each_label_and_guards_an_id_that_looks_like_a_formula(books, tmp_path):
    make_label(pair_of(books, "a,1"), 3, "people")
    make_label(make_pair(books, make_query(books, external_id="=2+3"), make_document(books, external_id="@x")), 1)
    rows = list(csv.reader(StringIO(export(books, "csv", tmp_path / "out"))))
    assert rows == [
        ["query_id", "doc_id", "grade", "origin"], ["'=2+3", "'@x", "1", "people"], ["Q2", "b", "1", "people"],
        ["q10", "B", "0", "debate+ensemble"], ["q10", "a,1", "3", "people"], ["q10", "b", "2", "adjudicator"],
    ]  # fmt: skip
    assert export(books, "qrels", tmp_path / "qrels").startswith("=2+3 0 @x 1\n"), "exact in qrels"


CELLS = {
    "d17": "d17", "-9aX_b": "-9aX_b", "+49": "+49", "-0.25": "-0.25", "=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)",
    "-1+cmd|'/C calc'!A0": "'-1+cmd|'/C calc'!A0", '+HYPERLINK("x","y")': '"\'+HYPERLINK(""x"",""y"")"',
    "\t=1": "'\t=1", "'=1": "''=1", "'tis": "'tis", 'a "b", c': '"a ""b"", c"',
}  # fmt: skip


@pytest.mark.parametrize("text", CELLS)
def test_no_cell_is_run_as_a_formula_and_plain_ids_stay_exact(text):
    written = CELLS[text]
    assert csv_cell(text) == written
    (read,) = next(csv.reader([written]))
    bare = read.lstrip("'")
    guarded = read != bare and (bare[0] in "=@\t\r+-")
    assert (read[1:] if guarded else read) == text


def test_judgments_hold_every_standing_grade_and_no_withdrawn_one(books, tmp_path):
    pair, judge = pair_of(books, "b"), make_judge("judge-1")
    alice, bob = make_assessor(books, "alice"), make_assessor(books, "bob")
    make_judgment(pair, alice, 2, arm="shown", guideline=3, milliseconds=4100)
    make_judgment(pair, bob, None, supersedes=make_judgment(pair, bob, 1))
    make_judgment(pair, make_assessor(books, "qrels", "reference"), 3)
    older, newer = make_campaign(books, [judge]), make_campaign(books, [judge])
    make_votes(older, pair, [judge], [0])
    make_votes(newer, pair, [judge], [1])
    rows = lines(export(books, "judgments", tmp_path / "out"))
    assert [(row["assessor"], row["kind"], row["grade"], row["step"]) for row in rows] == [
        ("judge-1", "judge", 1, "vote"), ("alice", "person", 2, "final"), ("qrels", "reference", 3, "import"),
    ]  # fmt: skip
    assert " ".join(rows[1]) == "query_id doc_id assessor kind grade step arm guideline ms time"
    assert (rows[1]["arm"], rows[1]["guideline"], rows[1]["ms"]) == ("shown", 3, 4100)
    assert rows[1]["time"].endswith("Z")


def test_marks_hold_the_words_that_people_marked_in_standing_judgments(books, tmp_path):
    pair = pair_of(books, "b")
    Document.objects.filter(pk=pair.document_id).update(text="An 😀 stands here. Tides follow the moon.")
    alice, bob = make_assessor(books, "alice"), make_assessor(books, "bob")
    make_judgment(pair, alice, 2, spans=[[3, 4], [18, 40]])
    make_judgment(pair, bob, None, supersedes=make_judgment(pair, bob, 1, spans=[[0, 2]]))
    rows = lines(export(books, "marks", tmp_path / "out"))
    assert [(row["assessor"], row["grade"], row["start"], row["end"], row["text"]) for row in rows] == [
        ("alice", 2, 3, 4, "😀"),
        ("alice", 2, 18, 40, "Tides follow the moon."),
    ]


def test_debates_hold_every_turn_of_the_newest_debate_and_whether_quotes_were_found(books, tmp_path):
    pair, judges = pair_of(books, "b"), [make_judge("a"), make_judge("b")]
    older, newer = (make_campaign(books, judges, policy="debate") for _ in range(2))
    make_turn(older, pair, judges[0], "for", 1, 1)
    for number in (2, 1):
        make_turn(newer, pair, judges[1], "against", number, 0)
        make_turn(newer, pair, judges[0], "for", number, 1)
    rows = lines(export(books, "debates", tmp_path / "out"))
    turns = [(row["round"], row["side"], row["judge"], row["verdict"]) for row in rows]
    assert turns == [(n, *one) for n in (1, 2) for one in (("for", "a", 1), ("against", "b", 0))]
    assert rows[0] == {
        "query_id": "q10", "doc_id": "b", "round": 1, "side": "for", "judge": "a", "verdict": 1,
        "reason": "Round 1, for.", "quotes": ["A mapping object", "Elsewhere"], "found": [True, False],
    }  # fmt: skip


def test_the_manifest_has_counts_coverage_and_hashes_and_no_time_or_host(books, tmp_path):
    text = export(books, "csv", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest == {
        "collection": "books",
        "format": "csv",
        "filters": {"origins": None, "texts": "current"},
        "options": {
            "grades": 3, "grade_names": [], "relevant_from": 1, "rubric": "auto", "instruction": "",
            "relevance": {"sufficiency": SUFFICIENCY.text, "helpfulness": HELPFULNESS.text},
        },
        "counts": {
            "rows": 3, "queries": 2, "grades": {"0": 1, "1": 1, "2": 1},
            "origins": {"adjudicator": 1, "debate+ensemble": 1, "people": 1},
        },
        "coverage": {"pairs": 4, "labelled": 3, "share": 0.75},
        "files": [{"name": "labels.csv", "rows": 3, "bytes": len(text), "sha256": sha256(text.encode()).hexdigest()}],
        "versions": {"manifest": 1, "format": 1, "guidelines": 0},
    }  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["labels.csv", "manifest.json"]

    assert export(books, "qrels", tmp_path / "some", origins=["people", "adjudicator"]) == "Q2 0 b 1\nq10 0 b 2\n"
    manifest = json.loads((tmp_path / "some" / "manifest.json").read_text())
    assert manifest["filters"]["origins"] == ["adjudicator", "people"]


@pytest.mark.parametrize("name", list(FORMATS))
def test_an_export_made_twice_gives_the_same_bytes(books, tmp_path, name):
    pair, judges = pair_of(books, "b"), [make_judge("a"), make_judge("b")]
    campaign = make_campaign(books, judges)
    make_votes(campaign, pair, judges, [1, 0])
    make_turn(campaign, pair, judges[0], "for", 1, 1)
    alice = make_assessor(books, "alice")
    make_judgment(pair, alice, 1, spans=[[0, 2]])
    Aspect.objects.create(query=pair.query, external_id="order", text="It keeps the order.")
    comparisons = ComparisonSet.objects.create(collection=books, people=1)
    others = [pair_of(books, "B"), pair_of(books, "a,1")]
    for seq, (other, outcome) in enumerate(zip(others, ("first", "equal"), strict=True), 1):
        prefer(Comparison.objects.create(set=comparisons, first=pair, second=other, seq=seq), alice, outcome)
    for folder in ("one", "two"):
        export(books, name, tmp_path / folder)
    assert (tmp_path / "one" / FORMATS[name].file).read_text() != FORMATS[name].header
    for file in (FORMATS[name].file, "manifest.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_an_empty_collection_exports_empty_files(tmp_path):
    empty = make_collection()
    for name, form in FORMATS.items():
        text = export(empty, name, tmp_path / name)
        if form.file.endswith(".json"):
            assert [value for value in json.loads(text).values() if value == []], name
        else:
            assert text == form.header


def test_a_failure_leaves_nothing_and_the_row_says_why(books, tmp_path, monkeypatch):
    def broken(*args):
        yield [("q1", "d1", 1, "people")]
        raise OSError("No space left on device")

    monkeypatch.setattr("annotation.exports.snapshots.rows_of", broken)
    snapshot = create_snapshot(books, ExportOptions(format="qrels"), tmp_path / "out")
    with pytest.raises(OSError, match="No space"):
        write_snapshot(snapshot)
    assert not (tmp_path / "out").exists()
    snapshot.refresh_from_db()
    assert snapshot.state == "failed" and "No space" in snapshot.error


def test_a_judgment_is_used_once_a_snapshot_holds_it(books, tmp_path):
    judgment = make_judgment(pair_of(books, "b"), make_assessor(books, "alice"), 1)
    judgment.refresh_from_db()

    def is_used():
        return ExportRecord.is_exported(judgment.pair.collection_id, judgment.created_at)

    assert not is_used()
    export(books, "debates", tmp_path / "debates")
    export(make_collection(), "qrels", tmp_path / "of_another")
    assert not is_used()
    (tmp_path / "taken" / "by_others").mkdir(parents=True)
    snapshot = create_snapshot(books, ExportOptions(format="qrels"), tmp_path / "taken")
    assert is_used(), "it is about to hold it"
    with pytest.raises(BadInput):
        write_snapshot(snapshot)
    assert not is_used()
    export(books, "qrels", tmp_path / "qrels")
    assert is_used()


def test_the_command_writes_into_a_new_or_an_empty_folder_and_refuses_others_and_what_it_does_not_know(books, tmp_path):
    def command(name, *options, collection="books", out):
        return call("export", collection, "--format", name, "--out", tmp_path / out, *options, "--json")

    assert command("qrels", out="a/b").json == json.loads((tmp_path / "a" / "b" / "manifest.json").read_text())
    (tmp_path / "empty").mkdir()
    command("csv", out="empty")
    (tmp_path / "notes").write_text("mine")
    for words, refused in (
        ("is not empty", command("qrels", out=".")),
        ('"films"', command("qrels", collection="films", out="out")),
        ("--format: ", command("xml", out="out")),
        ("no labels", command("debates", "--origins", "people", out="out")),
    ):
        assert (refused.code, refused.out) == (2, "") and words in refused.err and refused.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "empty", "notes"]
    assert [snapshot.format for snapshot in Snapshot.objects.order_by("id")] == ["qrels", "csv"]


@pytest.mark.django_db(transaction=True)
def test_an_export_sees_one_moment_however_long_it_takes(tmp_path):
    from annotation.exports.snapshots import one_view

    collection = make_collection("books")
    with one_view(), connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("repeatable read",)
    pair = make_pair(collection, make_query(collection, external_id="q"), make_document(collection, external_id="d"))
    make_label(pair, 1)
    assert export(collection, "qrels", tmp_path / "out") == "q 0 d 1\n"


def test_on_a_full_disk_an_export_leaves_nothing_though_its_buffer_cannot_be_written(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    written = ExportFiles(tmp_path / "out")
    # A limit of the size of files fails every write as a full disk does, that of the buffer on closing among them.
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            for name in ("queries.jsonl", "corpus.jsonl"):
                output = written.open(name)
                for _row in range(1_000 if name == "corpus.jsonl" else 1):
                    output.put("x" * 100 + "\n", 1)
        written.discard()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "out").exists()
