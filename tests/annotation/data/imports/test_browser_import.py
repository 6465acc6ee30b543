"""Importing in a real Chromium: six clicks to judged pairs, an upload that goes on after it broke off, every screen."""

import subprocess
from pathlib import Path

import pytest

from annotation.models import Role
from annotation.models.imports import FileImport, Upload
from config.env import ROOT
from corpus.models import Document
from jobs.processes import spawn_child, stop_children
from judges.models import Campaign, Work
from judges.panels.offline_panel import ensure_offline
from judges.workers import worker_pool
from tests.engine_parts import FAST
from tests.factories import make_collection, make_member, make_user
from tests.instances import until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
COUNT_CLICKS = """addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true);"""
TEXTS = ["A dict maps keys to values.", "A tuple cannot be changed.", "A list can be changed."]
QUERIES = ["What maps keys to values?", "What can be changed?"]


@pytest.fixture
def worker(instance):
    """A real worker, which imports and judges."""
    child = spawn_child(
        worker_pool.worker_command(1, "import"), {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    yield child
    stop_children([child])


def csv_files(folder: Path) -> list[Path]:
    files = {
        "documents.csv": "id,text\n" + "".join(f'd{n},"{text}"\n' for n, text in enumerate(TEXTS)),
        "queries.csv": "id,Query Text\n" + "".join(f"q{n},{text}\n" for n, text in enumerate(QUERIES)),
        "pairs.csv": "qid,docid\n" + "".join(f"q{q},d{d}\n" for q in range(2) for d in range(3)),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]


def test_a_csv_is_imported_and_judged_offline_in_six_clicks_from_the_start_page(
    new_page, instance, worker, tmp_path, violations
):
    ensure_offline()
    make_collection("books")
    page = new_page(user=make_user("olga", is_owner=True))
    page.add_init_script(COUNT_CLICKS)
    page.goto("/")
    page.get_by_role("link", name="books").first.click()
    page.get_by_role("link", name="Import files").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_label("Files").click()
    chooser.value.set_files(csv_files(tmp_path))
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("button", name="Try offline").click()
    page.get_by_role("button", name="Start now").click()
    page.wait_for_url("**/c/books/")
    assert page.evaluate("sessionStorage.clicks") == "6"
    until(lambda: Campaign.objects.filter(state="finished").exists())
    assert Document.objects.count() == 3 and Work.objects.count() == 6
    page.goto(f"/c/books/import/{FileImport.objects.get().number}/")
    assert violations(page) == []


def test_an_upload_goes_on_after_a_lost_connection_and_a_reload(new_page, instance, console, tmp_path):
    page = new_page(user=make_member(make_collection("birds"), "charlie", Role.ADMIN).user)
    large = tmp_path / "corpus.jsonl"
    line = f'{{"_id": "%d", "text": "{"word " * 4000}"}}\n'
    large.write_text("".join(line % n for n in range(2000)))  # five parts
    page.goto("/c/birds/import/")
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        page.get_by_label("Files").set_input_files(large)
    page.context.set_offline(True)
    page.get_by_text("No connection. Trying again; nothing is lost.").wait_for()
    page.context.set_offline(False)
    page.reload()
    page.get_by_text("Choose the same file again to continue").wait_for()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.headers.get("upload-offset", "")))
    page.get_by_label("Files").set_input_files(large)
    page.wait_for_url("**/import/*/")
    parts = [int(offset) for offset in sent if offset]
    assert parts and min(parts) >= 8 << 20, "the first part is not sent again"
    upload = Upload.objects.get()
    assert upload.size == large.stat().st_size and upload.file_import is not None
    console.clear()  # the lost connection


def test_an_upload_is_paused_goes_on_and_another_is_cancelled(new_page, instance, tmp_path):
    page = new_page(user=make_member(make_collection("birds"), "charlie", Role.ADMIN).user)
    first, second, third = (tmp_path / name for name in ("corpus.jsonl", "other.jsonl", "third.jsonl"))
    first.write_text("".join(f'{{"_id": "{n}", "text": "{"word " * 4000}"}}\n' for n in range(2000)))
    second.write_text('{"_id": "x", "text": "Not wanted."}\n')
    third.write_bytes(first.read_bytes())
    page.goto("/c/birds/import/")
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 8_000_000}
    line.send("Network.emulateNetworkConditions", slow)
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        page.get_by_label("Files").set_input_files([first, second])
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused. What has come is kept for a day.").wait_for()
    page.get_by_role("listitem").filter(has_text="other.jsonl").get_by_role("button", name="Cancel").click()
    assert Upload.objects.get().name == "corpus.jsonl"
    line.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    page.get_by_role("button", name="Resume").click()
    page.wait_for_url("**/import/*/")
    assert Upload.objects.get().name == "corpus.jsonl" and FileImport.objects.count() == 1
    page.goto("/c/birds/import/")
    line.send("Network.emulateNetworkConditions", slow)
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        page.get_by_label("Files").set_input_files(third)
    with page.expect_response(lambda response: response.request.method == "DELETE" and response.status == 204):
        page.get_by_role("button", name="Cancel").click()
    page.get_by_text("The upload begins as soon as you choose files.").wait_for()
    assert not Upload.objects.filter(file_import=None).exists() and page.get_by_label("Files").is_enabled()


@pytest.mark.slow
def test_without_a_script_files_are_sent_by_the_button(new_page, instance, tmp_path):
    user = make_member(make_collection("birds"), "charlie", Role.ADMIN).user
    page = new_page(user=user, java_script_enabled=False)
    page.goto("/c/birds/import/")
    page.get_by_label("Files").set_input_files(csv_files(tmp_path))
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/import/*/")
    assert FileImport.objects.get().uploads.count() == 3 == Upload.objects.count()
