"""Importing collections: formats are recognised by content, the same import changes nothing, versions are kept."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from corpus.errors import BadInput, BadOption, OptionWouldHelp
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Assessor, Collection, Document, Judgment, Label, Pair, Query
from tests.called import call
from tests.imported_files import import_files

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[3]
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
PARTS = ("corpus", "queries", "qrels", "pairs")
DOCUMENTS = [
    {"_id": "d1", "title": "Mappings", "text": "A mapping maps keys.\nTab\there, back\\slash.", "metadata": {"p": 1}},
    {"_id": "d2", "title": "", "text": "A sequence has an order."},
    {"_id": "d3", "text": "Sets have no order and no keys."},
]
QUERIES = [
    {"_id": "q1", "text": "What maps keys?", "answers": ["A mapping.", 'A "dict" \\ or so'], "instruction": "Strict."},
    {"_id": "q2", "text": "What has an order?"},
]


@pytest.fixture
def files(tmp_path):
    """Write files and make the options of an import of them; contents are bytes, text, or rows of JSON lines."""

    def write(runs=(), dry_run=False, **contents):
        values = {"corpus": DOCUMENTS, "queries": QUERIES, **contents}
        files = {name: save(tmp_path / name, values.pop(name)) for name in PARTS if name in values}
        files["runs"] = [save(tmp_path / f"run{n}", run) for n, run in enumerate(runs)]
        return ImportFiles(**files, dry_run=dry_run, options=ImportOptions(**values))

    return write


def save(path, content):
    if isinstance(content, list):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def contents():
    """Every row that an import makes."""
    models = (Collection, Document, Query, Pair, Judgment, Assessor)
    return [list(model.objects.order_by("pk").values()) for model in models]


def pairs_of(name="small", **conditions):
    rows = Pair.objects.filter(collection__name=name, **conditions)
    return set(rows.values_list("query__external_id", "document__external_id"))


def test_what_the_files_say_is_what_the_rows_hold_and_the_same_again_changes_nothing(files):
    options = files(qrels="query-id\tcorpus-id\tscore\nq1\td1\t1\n", bm25=2)
    report = import_collection("small", options)
    assert (report["documents"], report["queries"], report["judgments"]) == (3, 2, 1)
    first = Document.objects.get(external_id="d1")
    assert (first.title, first.text, first.metadata) == ("Mappings", DOCUMENTS[0]["text"], {"p": 1})
    assert (first.version, first.is_current, len(first.content_hash)) == (1, True, 64)
    query = Query.objects.get(external_id="q1")
    assert (query.text, query.answers, query.instruction) == ("What maps keys?", QUERIES[0]["answers"], "Strict.")
    assert Query.objects.get(external_id="q2").answers == []
    rows = contents()
    again = import_collection("small", options)
    assert not again["changed"] and not any(again["new"].values()) and not any(again["updated"].values())
    assert rows == contents()


def test_other_text_is_refused_and_with_update_a_new_version_beside_the_old_with_its_pair(files):
    qrels = "q1 0 d3 1\n"
    import_collection("small", files(qrels=qrels))
    changed = [*DOCUMENTS[:2], {"_id": "d3", "text": "Sets are unordered."}]
    with pytest.raises(OptionWouldHelp, match=r'corpus, line 3: "d3"') as refused:
        import_collection("small", files(corpus=changed, qrels=qrels))
    assert refused.value.problems[0][0] == "update"
    report = import_collection("small", files(corpus=changed, qrels=qrels, update=True))
    assert (report["documents"], report["updated"]["documents"], report["new"]["documents"]) == (3, 1, 0)
    versions = Document.objects.filter(external_id="d3").order_by("version")
    assert [(row.version, row.is_current) for row in versions] == [(1, False), (2, True)]
    assert [row.pair_set.count() for row in versions] == [1, 1]
    back = import_collection("small", files(qrels=qrels, update=True))
    assert back["updated"]["documents"] == 1
    assert Document.objects.get(external_id="d3", is_current=True).version == 1


def test_metadata_alone_is_updated_in_place(files):
    import_collection("small", files())
    other = [{**DOCUMENTS[0], "metadata": {"p": 2}}, *DOCUMENTS[1:]]
    with pytest.raises(BadInput, match="different metadata"):
        import_collection("small", files(corpus=other))
    import_collection("small", files(corpus=other, update=True))
    assert Document.objects.get(external_id="d1").metadata == {"p": 2}


def test_gzip_bom_crlf_and_blank_lines_are_no_matter(files):
    windows = "\ufeff" + "\r\n\r\n".join(json.dumps(row) for row in DOCUMENTS) + "\r\n"
    plain = import_collection("plain", files())
    packed = import_collection("packed", files(corpus=gzip.compress(windows.encode())))
    assert packed["documents"] == plain["documents"] == 3
    assert Document.objects.values("content_hash").distinct().count() == 3


def test_trec_xml_without_a_root_and_with_loose_ends(files):
    corpus = (
        "<DOC>\n<DOCNO> A-1 </DOCNO>\n<TITLE>AT&T &amp; co</TITLE>\n<author>Ann</author>\n"
        "<TEXT>\na < b, <p>c\n\nd\n</TEXT>\n</DOC><DOC><DOCNO>A-2</DOCNO><TEXT>x</TEXT></DOC>\n"
    )
    queries = "<top>\n<num> Number: 301\n<title> crime\n<desc> Description:\nWho?\n</top>\n"
    import_collection("small", files(corpus=corpus, queries=queries))
    first = Document.objects.get(external_id="A-1")
    assert (first.title, first.text, first.metadata) == ("AT&T & co", "a < b, c\n\nd", {"author": "Ann"})
    query = Query.objects.get()
    assert (query.external_id, query.text, query.metadata) == ("301", "crime", {"desc": "Who?"})


def test_qrels_of_both_kinds_become_reference_grades_and_settle_nothing(files):
    beir = import_collection("beir", files(qrels="query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t0\n"))
    trec = import_collection("trec", files(qrels="q1 0 d1 2\nq2 0 d2 -1\n"))
    assert (beir["judgments"], beir["pairs"], beir["grades_below_zero"]) == (2, 2, 0)
    assert (trec["judgments"], trec["pairs"], trec["grades_below_zero"]) == (1, 2, 1)
    kinds = set(Judgment.objects.values_list("assessor__kind", "assessor__name", "step"))
    assert kinds == {("reference", "qrels", "import")}
    assert sorted(Judgment.objects.values_list("grade", flat=True)) == [0, 2, 2]
    assert not Label.objects.exists()


def test_a_gold_below_0_is_no_gold_and_its_pair_is_judged_all_the_same(files):
    golds = (("q1", "d1", -1), ("q1", "d2", 0), ("q2", "d2", -7))
    pairs = [{"query_id": query, "doc_id": document, "gold": gold} for query, document, gold in golds]
    report = import_collection("small", files(pairs=pairs))
    assert (report["pairs"], report["judgments"], report["grades_below_zero"]) == (3, 1, 2)
    assert [(one.grade, one.assessor.name) for one in Judgment.objects.all()] == [(0, "gold")]


def test_candidates_are_the_union_of_what_the_options_name(files):
    run = "q2 Q0 d3 1 9.5 sys\nq2 Q0 d1 2 9.0 sys\nq2 Q0 d2 3 1.0 sys\n"
    pairs = [{"query_id": "q1", "doc_id": "d1", "teacher_score": 0.25, "gold": 1}, {"query_id": "q2", "doc_id": "d3"}]
    report = import_collection("small", files(runs=[run], depth=2, pairs=pairs, qrels="q1 0 d2 1\n"))
    assert pairs_of(is_candidate=True) == {("q1", "d1"), ("q2", "d3"), ("q2", "d1")}
    assert (report["pairs"], report["judgments"]) == (3, 2)
    assert pairs_of(is_candidate=False) == {("q1", "d2")}
    assert Pair.objects.get(query__external_id="q1", is_candidate=True).teacher_score == 0.25
    assert Judgment.objects.get(assessor__name="gold").grade == 1
    later = import_collection("small", files(qrels="q1 0 d2 1\n", pairs=pairs, qrels_pairs=True))
    assert (later["pairs"], later["new"]["pairs"], later["updated"]["pairs"]) == (4, 0, 1)


def test_equal_scores_of_a_run_are_cut_by_document_id_descending_and_bm25_names_the_best(files):
    run = "q1 Q0 d1 1 5.0 s\nq1 Q0 d3 2 5.0 s\nq1 Q0 d2 3 5.00000000001 s\n"
    import_collection("small", files(runs=[run], depth=2))
    assert pairs_of() == {("q1", "d3"), ("q1", "d2")}
    import_collection("best", files(bm25=1))
    assert pairs_of("best") == {("q1", "d1"), ("q2", "d2")}


def test_a_changed_grade_is_refused_and_with_update_supersedes(files):
    import_collection("small", files(qrels="q1 0 d1 1\n"))
    with pytest.raises(OptionWouldHelp, match="qrels, line 1: grade 2") as refused:
        import_collection("small", files(qrels="q1 0 d1 2\n"))
    assert refused.value.problems[0][0] == "update"
    report = import_collection("small", files(qrels="q1 0 d1 2\n", update=True))
    assert (report["judgments"], report["updated"]["judgments"]) == (1, 1)
    assert Judgment.objects.get(grade=2).supersedes.grade == 1


def test_a_dry_run_and_a_refused_import_leave_everything_as_it_was(files):
    report = import_collection("small", files(qrels="q1 0 d1 1\n", bm25=2, dry_run=True))
    assert report["documents"] == 3 and report["dry_run"] and report["new"]["judgments"] == 1
    assert not Collection.objects.exists() and not Document.objects.exists() and not Judgment.objects.exists()
    import_collection("small", files(qrels="q1 0 d1 1\n"))
    rows = contents()
    with pytest.raises(BadInput):
        import_collection("small", files(corpus=[*DOCUMENTS, {"_id": "d4", "text": "x"}], qrels="q1 0 nope 1\n"))
    with pytest.raises(BadOption) as refused:
        import_collection("small", files(grades=1))
    assert refused.value.problems[0][0] == "grades"
    assert rows == contents()


def test_the_command_prints_one_json_document_and_says_when_there_are_no_pairs(files):
    sources = files().sources
    arguments = ["small", *(f"--{part}={sources[part][0]}" for part in ("corpus", "queries"))]
    report, said = import_files(*arguments)
    assert report["documents"] == 3 and "0 pairs: name candidates" in said
    assert "Nothing changed" in call("import_collection", *arguments).out


@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="shared/data/cranfield is not beside the checkout: 1 test not run")
def test_cranfield_imports_completely():
    files = ImportFiles(
        corpus=CRANFIELD / "cran.all.1400.xml",
        queries=CRANFIELD / "cran.qry.xml",
        qrels=CRANFIELD / "cranqrel.trec.txt",
        options=ImportOptions(query_ids="position", empty="keep"),
    )
    report = import_collection("cranfield", files)
    assert (report["documents"], report["queries"], report["pairs"], report["judgments"]) == (1400, 225, 1837, 1837)
    assert report["empty_documents"] == 2
    assert Counter(Judgment.objects.values_list("grade", flat=True)) == {0: 225, 1: 1611, 3: 1}
    assert Query.objects.get(external_id="1").text.startswith("what similarity laws must be obeyed")
    assert not import_collection("cranfield", files)["changed"]


MEMORY = """
import sys
from pathlib import Path
import django
django.setup()
from corpus.importing.service import ImportFiles, import_collection
from tests.memory import peak_megabytes
report = import_collection("large", ImportFiles(**dict(zip(["corpus", "queries", "qrels"], map(Path, sys.argv[1:])))))
print(report["documents"], report["judgments"], peak_megabytes())
"""


@pytest.mark.weekly
def test_a_million_documents_arrive_within_300_mb(instance, tmp_path):
    corpus, queries, qrels = (tmp_path / name for name in ("corpus", "queries", "qrels"))
    with corpus.open("w") as out:
        for n in range(1_000_000):
            out.write(
                f'{{"_id": "d{n}", "title": "Document {n}", "text": "{"Some words that stand here. " * 6}{n}"}}\n'
            )
    queries.write_text('{"_id": "q1", "text": "Which?"}\n')
    qrels.write_text("".join(f"q1 0 d{n} 1\n" for n in range(0, 1_000_000, 10)))
    arguments = [sys.executable, "-c", MEMORY, corpus, queries, qrels]
    done = subprocess.run(arguments, env=instance, cwd=ROOT, capture_output=True, text=True, check=True)
    documents, judgments, peak = map(int, done.stdout.split())
    assert (documents, judgments) == (1_000_000, 100_000)
    assert peak < 300
