"""The import pages: what files hold, the check with its counts, corrections, the import, and all that can go wrong."""

import html
import io
import json
import os
import re
import signal
import subprocess
import zipfile
from datetime import timedelta

import lxml.html
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from annotation.data.imports import importing
from annotation.data.imports import page as page_module
from annotation.models import AuditEntry, Role
from annotation.models.imports import FileImport, Upload
from benchmark.models import Ranking, Run
from config.env import ROOT
from corpus.importing import columns, detection
from corpus.models import Assessor, Document, Judgment, Label, Pair, Query
from jobs import leases
from jobs.processes import spawn_child, stop_children
from judges.workers import worker_pool
from tests.engine_parts import FAST
from tests.factories import client_of, make_collection, make_member
from tests.imported_files import bring, correct, start, work_off
from tests.instances import until

pytestmark = pytest.mark.django_db
DOCUMENTS = "id,title,text\nd1,One,First.\nd2,,Second.\n"
QUERIES = "id,Query Text\nq1,Which?\n"
PAIRS = "qid,docid\nq1,d1\n"
ALL = {"docs.csv": DOCUMENTS, "queries.csv": QUERIES, "pairs.csv": PAIRS}


def page(client: Client, row: FileImport) -> str:
    response = client.get(f"/c/birds/import/{row.number}/")
    assert response.status_code == 200
    return html.unescape(" ".join(response.content.decode().split()))


def contents() -> list[int]:
    return [model.objects.count() for model in (Document, Query, Pair, Judgment)]


def page_form(client: Client, row: FileImport) -> dict[str, str]:
    """The fields of the form below the counts, with their values, as a browser sends them."""
    tree = lxml.html.fromstring(client.get(f"/c/birds/import/{row.number}/").content.decode())
    return {name: value for name, value in tree.get_element_by_id("choices").form_values()}


def counts_of(text: str) -> dict[str, list[int]]:
    """The table of counts: new, changed, unchanged."""
    rows = re.findall(r'<th scope="row">([^<]+)</th>((?:\s*<td class="num">\d+</td>)+)', text)
    return {what: [int(n) for n in re.findall(r">(\d+)<", cells)] for what, cells in rows}


def test_csv_files_are_recognised_checked_and_imported_and_the_second_time_it_says_what_is_new_or_changed(charlie, var):
    row = bring(charlie, "birds", ALL)
    shown = page(charlie, row)
    for words in ("Documents</option>", "Queries</option>", "Pairs to judge</option>", "Second.", "Which?"):
        assert words in shown, words
    assert 'aria-label="Column Query Text"' in shown
    assert counts_of(shown) == {"Documents": [2, 0, 0], "Queries": [1, 0, 0], "Pairs": [1, 0, 0]}
    assert contents() == [0, 0, 0, 0], "a check changes nothing"
    row = start(charlie, row)
    assert row.is_imported and contents() == [2, 1, 1, 0]
    shown = page(charlie, row)
    assert "Try offline" in shown and "refused" not in shown
    assert not Upload.objects.exists() and not list((var / "uploads" / "birds").iterdir())
    entry = AuditEntry.objects.get(act="import.files")
    assert entry.details == {"files": ["docs.csv", "queries.csv", "pairs.csv"], "number": row.number}
    assert "Earlier imports" in charlie.get("/c/birds/import/").content.decode()

    more = ALL | {"docs.csv": DOCUMENTS.replace("Second.", "Other.") + "d3,,Third.\n"}
    refused = bring(charlie, "birds", more)
    assert refused.state == "failed"
    shown = page(charlie, refused)
    assert refused.error.startswith("docs.csv, line 3:") and refused.error in shown and 'name="update"' in shown
    correct(charlie, refused, {"update": "on"})
    assert counts_of(page(charlie, refused)) == {"Documents": [1, 1, 1], "Queries": [0, 0, 1], "Pairs": [0, 0, 1]}
    again = bring(charlie, "birds", ALL | {"docs.csv": "id,text\nd3,Third.\n"})
    assert again.state == "ready" and Document.objects.count() == 2


def test_a_refused_check_names_file_and_line_and_nothing_is_imported(charlie):
    for files, reason in (
        (ALL | {"pairs.csv": "qid,docid\nq1,d1\nq1,d9\n"}, 'pairs.csv, line 3: no document has the id "d9"'),
        ({"docs.csv": DOCUMENTS}, "No file contains queries, and the collection has none"),
    ):
        row = bring(charlie, "birds", files)
        assert row.state == "failed" and row.error.startswith(reason) and contents() == [0, 0, 0, 0]
        shown = page(charlie, row)
        assert "Nothing was imported" in shown and "control_import" not in shown and reason in html.unescape(shown)
        charlie.post(f"/c/birds/import/{row.number}/start/")
        row.refresh_from_db()
        assert row.dry_run and not AuditEntry.objects.filter(act="import.files").exists(), "what is wrong cannot start"
    before = (FileImport.objects.count(), Upload.objects.count())
    for files, reason in (
        ([SimpleUploadedFile("x.csv", b"")], "the file is empty"), ([], "Choose one or more files."),
    ):  # fmt: skip
        response = charlie.post("/c/birds/import/", {"files": files})
        assert response.status_code == 422 and reason in html.unescape(response.text), "the form is kept"
    assert (FileImport.objects.count(), Upload.objects.count()) == before


def test_a_file_that_is_not_recognised_is_left_out_with_the_reason(charlie):
    for content, reason in (
        ("id,text,text\n1,x,y\n", 'x.csv, line 1: two columns have the header "text"; rename one'),
        ("Frage,Antwort\nWarum?,Darum.\n", "Left out: say what its columns are"),
    ):
        row = bring(charlie, "birds", {"x.csv": content})
        assert row.state == "failed" and row.error.startswith("x.csv"), "what a person chose is not left out by itself"
        assert reason in page(charlie, row)
        correct(charlie, row, {"kind-0": ""})
        assert reason in page(charlie, row), "the reason stays as long as nobody chose"
        correct(charlie, row, {"kind-0": "skip"})
        assert row.state == "failed" and row.error.startswith("No file to")
    row = bring(charlie, "birds", {**ALL, "x.csv": "Alpha,Beta\nOne,Two\n"})
    correct(charlie, row, {"kind-3": "skip"})
    assert row.is_checked
    correct(charlie, row, page_form(charlie, row) | {"start": ""})
    assert row.is_imported and contents() == [2, 1, 1, 0], "a file that is left out is no new choice"


def test_columns_that_no_header_names_are_chosen_on_the_page(charlie):
    row = bring(charlie, "birds", {"x.csv": "Frage,Antwort,Note\nWarum?,Darum.,1\nWarum?,So.,0\n"})
    correct(charlie, row, {"field-0-0": "query", "field-0-1": "query"})
    assert row.state == "failed" and '"Frage"' in row.error and '"Antwort"' in row.error
    assert row.error.removeprefix("x.csv: ") in page(charlie, row)
    chosen = {"field-0-0": "query", "field-0-1": "text", "field-0-2": "grade", "kind-0": "by-columns"}
    correct(charlie, row, chosen)
    assert counts_of(page(charlie, row)) == {
        "Documents": [2, 0, 0], "Queries": [1, 0, 0], "Pairs": [2, 0, 0], "Grades": [2, 0, 0],
    }  # fmt: skip
    start(charlie, row)
    assert contents() == [2, 1, 2, 2]


def test_import_pressed_after_a_choice_checks_again_and_then_imports_what_was_chosen(charlie):
    row = bring(charlie, "birds", {"x.csv": "Frage,Passage,Kennung\nWarum?,Darum.,k1\nWarum?,So.,k2\n"})
    assert row.is_checked
    body = page_form(charlie, row) | {"start": ""}
    address = f"/c/birds/import/{row.number}/"
    response = charlie.post(address, body | {"field-0-2": "doc_id"})
    assert response["Location"] == f"{address}?changed", "where the page says why nothing was imported"
    assert 'class="notice" role="status"' in charlie.get(response["Location"]).text
    assert "?looking" in page(charlie, row), "the lists show the columns from before until the page is loaded again"
    poll = {"path": f"{address}?looking", "headers": {"HX-Request": "true"}}
    assert "HX-Refresh" not in charlie.get(**poll)
    work_off()
    assert charlie.get(**poll)["HX-Refresh"] == "true"
    row.refresh_from_db()
    assert row.is_checked and row.dry_run, "what the counts say was of other columns"
    assert contents() == [0, 0, 0, 0]
    correct(charlie, row, body | {"field-0-2": "doc_id", "bm25": "1"})
    assert row.dry_run and row.options["bm25"] == 1, "options are choices, too"
    correct(charlie, row, page_form(charlie, row) | {"start": ""})
    assert row.is_imported and {document.external_id for document in Document.objects.all()} == {"k1", "k2"}


def test_the_page_says_which_columns_are_not_read_and_what_helps(charlie):
    text = "query,chunk,label,source\nWhich bird?,A robin.,1,web\nWhich bird?,Another.,0,web\n"
    row = bring(charlie, "birds", {"x.csv": text})
    shown = html.unescape(page(charlie, row))
    assert 'No column is the document that "label" is about: map "chunk" to "text"' in shown
    correct(charlie, row, {"field-0-1": "text", "kind-0": "by-columns"})
    shown = html.unescape(page(charlie, row))
    assert '<span class="mono">source</span>: each row is a pair' in shown
    assert counts_of(shown)["Grades"] == [2, 0, 0]


def test_json_lines_that_could_be_either_are_what_the_person_says(charlie):
    row = bring(charlie, "birds", {f"{name}.jsonl": f'{{"_id": "1", "text": "{name}."}}\n' for name in "ab"})
    assert [one["holds"]["kind"] for one in row.files] == ["documents", "documents"], "parts of one, until told"
    assert "bm25" not in row.options, "no pair is added that nobody asked for"
    correct(charlie, row, {"kind-1": "queries", "bm25": "3"})
    assert row.is_checked and row.report["new"]["queries"] == 1
    correct(charlie, row, {"kind-0": "skip", "kind-1": "queries", "bm25": "3"})
    assert row.state == "failed" and "contains documents" in row.error and row.report == {}


def test_a_zip_of_a_beir_folder_is_imported(charlie):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("beir/corpus.jsonl", '{"_id": "d1", "title": "", "text": "First."}\n')
        archive.writestr("beir/queries.jsonl", '{"_id": "q1", "text": "Which?"}\n')
        for split, grade in (("dev", 0), ("test", 1), ("train", 1)):
            archive.writestr(f"beir/qrels/{split}.tsv", f"query-id\tcorpus-id\tscore\nq1\td1\t{grade}\n")
    row = bring(charlie, "birds", {"beir.zip": file.getvalue()})
    # The same pair has two grades: one error names both files, and a split is chosen by leaving the other out.
    dev, test = (f"beir.zip/beir/qrels/{split}.tsv" for split in ("dev", "test"))
    assert row.error.startswith(f"{test}, line 2:") and f"{dev}, line 2," in row.error
    place = [one["member"] for one in row.files].index("beir/qrels/dev.tsv")
    correct(charlie, row, {f"kind-{place}": "skip"})
    shown = page(charlie, row)
    assert "beir.zip/beir/qrels/train.tsv</span>: 1 grade" in shown
    start(charlie, row)
    assert contents() == [1, 1, 1, 1] and Judgment.objects.get().grade == 1


STUDIO = [
    {"id": 1, "data": {"query": "Which?", "document": "First."},
     "annotations": [{"completed_by": {"email": f"{who}@site.example"},
                      "result": [{"from_name": "fit", "type": "choices", "value": {"choices": [said]}}]}
                     for who, said in (("alice", "Relevant"), ("bob", "Not relevant"), ("dora", "Relevant"))]},
]  # fmt: skip


def test_judgments_of_another_tool_settle_pairs_unless_the_person_says_that_they_measure(charlie):
    row = bring(charlie, "birds", {"studio.json": json.dumps(STUDIO)})
    assert row.files[0]["holds"]["kind"] == "all" and 'aria-label="Column fit"' in page(charlie, row)
    row = start(charlie, row)
    assert contents() == [1, 1, 1, 3] and Label.objects.get().grade == 1
    assert "3 labels" not in page(charlie, row) and "1 label was decided" in page(charlie, row)
    names = set(Assessor.objects.filter(kind="human-import").values_list("name", flat=True))
    assert names == {"alice@site.example", "bob@site.example", "dora@site.example"}
    other = make_collection("owls")
    client = client_of(make_member(other, "charlie", Role.ADMIN))
    row = bring(client, "owls", {"studio.json": json.dumps(STUDIO)})
    correct(client, row, {"graded_by": "judge"})
    start(client, row)
    assert Assessor.objects.filter(collection=other, kind="judge-import").count() == 3
    assert not Label.objects.filter(pair__collection=other).exists()


def test_queries_are_numbered_by_their_place_where_the_person_says_so(charlie):
    files = ALL | {"queries.csv": "id,Query Text\n365,Which?\n", "pairs.csv": "qid,docid\n1,d1\n"}
    row = bring(charlie, "birds", files)
    assert row.error.startswith("pairs.csv, line 2:") and '"1"' in row.error
    refused = charlie.post(f"/c/birds/import/{row.number}/", {"graded_by": "ghosts"})
    assert refused.status_code == 422
    correct(charlie, row, {"query_ids": "position"})
    start(charlie, row)
    assert Query.objects.get().external_id == "1" and contents() == [2, 1, 1, 0]


def test_the_page_has_words_for_every_kind_of_file_and_column():
    assert page_module.KINDS.keys() == set(detection.KINDS)
    assert page_module.FIELDS.keys() == set(columns.EVERY_FIELD)


def test_a_ranking_that_is_imported_is_a_run_of_the_benchmark(charlie):
    ranking = "q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 1.5 x\n"
    files = {"docs.csv": DOCUMENTS, "queries.csv": QUERIES, "system A.run": ranking}
    row = bring(charlie, "birds", files)
    assert not Run.objects.exists(), "a check keeps nothing"
    assert counts_of(page(charlie, row))["Runs"] == [1, 0, 0]
    start(charlie, row)
    assert (row.report["runs"], Run.objects.get().name, contents()[2]) == (1, "system-A", 2)
    assert Ranking.objects.get().documents == list(
        Document.objects.order_by("external_id").values_list("pk", flat=True)
    )
    again = start(charlie, bring(charlie, "birds", files))
    assert (again.report["runs"], Run.objects.count()) == (0, 1)
    assert "system-A already" in page(charlie, again)


def test_an_import_starts_once_is_not_corrected_after_and_the_page_polls_until_it_is_over(charlie):
    row = bring(charlie, "birds", ALL)
    for _ in range(2):
        charlie.post(f"/c/birds/import/{row.number}/start/")
    assert AuditEntry.objects.filter(act="import.files").count() == 1
    late = charlie.post(f"/c/birds/import/{row.number}/", {"update": "on"})
    assert late.status_code == 422 and "already started" in late.content.decode()
    row.refresh_from_db()
    assert row.options.get("update") is not True
    work_off()
    assert contents() == [2, 1, 1, 0]
    assert charlie.get(f"/c/birds/import/{row.number}/", headers={"HX-Request": "true"}).status_code == 286
    FileImport.objects.update(state="running", done=12_345, total=20_000, phase="documents", dry_run=False)
    part = charlie.get(f"/c/birds/import/{row.number}/", headers={"HX-Request": "true"})
    assert part.status_code == 200 and "Reading documents: 12,345" in part.content.decode()
    assert "<html" not in part.content.decode()


def test_cancelling_in_the_middle_leaves_nothing_and_checking_again_starts_over(charlie, monkeypatch):
    row = bring(charlie, "birds", ALL)
    here = f"/c/birds/import/{row.number}/"
    charlie.post(f"{here}start/")
    real = importing.plan_files

    def cancel_first(job):
        charlie.post(f"{here}cancel/")
        return real(job)

    monkeypatch.setattr(importing, "plan_files", cancel_first)
    work_off()
    row.refresh_from_db()
    assert row.state == "cancelled" and contents() == [0, 0, 0, 0]
    assert f"{here}go-on/" in page(charlie, row) and Upload.objects.count() == len(ALL)
    monkeypatch.undo()
    correct(charlie, row, {})
    assert row.is_checked
    start(charlie, row)
    assert contents() == [2, 1, 1, 0]


def test_what_was_cancelled_is_resumed_and_what_was_refused_is_corrected(charlie):
    row = bring(charlie, "birds", ALL)
    charlie.post(f"/c/birds/import/{row.number}/start/")
    charlie.post(f"/c/birds/import/{row.number}/cancel/")
    work_off()
    assert contents() == [0, 0, 0, 0]
    address = f"/c/birds/import/{row.number}/go-on/"
    assert address in page(charlie, row)
    charlie.post(address)
    work_off()
    row.refresh_from_db()
    assert row.is_imported and contents() == [2, 1, 1, 0]
    assert AuditEntry.objects.filter(act="import.files").count() == 2, "started, and resumed"
    charlie.post(address)
    row.refresh_from_db()
    assert row.is_imported and AuditEntry.objects.filter(act="import.files").count() == 2, "it has ended"
    refused = bring(charlie, "birds", {"documents.csv": "id,text\nd9,\n"})
    assert refused.state == "failed" and f"/c/birds/import/{refused.number}/go-on/" not in page(charlie, refused)


def test_discarding_deletes_the_files_swept_ones_are_named_and_an_import_that_ended_stays(charlie):
    row = bring(charlie, "birds", ALL)
    charlie.post(f"/c/birds/import/{row.number}/discard/")
    assert not FileImport.objects.exists() and not Upload.objects.exists()
    row = bring(charlie, "birds", ALL)
    Upload.objects.all().delete()
    row = start(charlie, row)
    assert row.state == "failed" and row.error.startswith("docs.csv: the file was") and contents() == [0, 0, 0, 0]
    done = start(charlie, bring(charlie, "birds", ALL))
    charlie.post(f"/c/birds/import/{done.number}/discard/")
    assert FileImport.objects.latest("pk") == done
    assert charlie.post(f"/c/birds/import/{done.number}/pause/").status_code == 404


def test_a_worker_that_lost_its_lease_imports_nothing(charlie, monkeypatch):
    row = bring(charlie, "birds", ALL)
    charlie.post(f"/c/birds/import/{row.number}/start/")
    late = leases.claim(FileImport)
    assert late is not None
    FileImport.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    work_off()
    assert contents() == [2, 1, 1, 0]
    importing.perform_import(late)
    row.refresh_from_db()
    assert row.is_imported and contents() == [2, 1, 1, 0]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_import_whose_worker_is_killed_in_the_middle_is_done_once_by_another(instance, charlie):
    row = bring(charlie, "birds", ALL)
    charlie.post(f"/c/birds/import/{row.number}/start/")
    workers = []

    def begin():
        command = worker_pool.worker_command(1, f"import-{len(workers)}")
        workers.append(spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL))
        return workers[-1]

    def is_waiting_for_lock():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'corpus_pair'::regclass")
            return bool(cursor.fetchone()[0])

    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE corpus_pair IN ACCESS EXCLUSIVE MODE")  # documents are in, pairs are not
            first = begin()
            until(is_waiting_for_lock)
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
        assert contents() == [0, 0, 0, 0]
        begin()
        until(lambda: FileImport.objects.filter(state="ready", dry_run=False).exists())
        until(lambda: not Upload.objects.exists())
    finally:
        stop_children(workers)
    assert contents() == [2, 1, 1, 0]
