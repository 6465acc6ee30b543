"""Exports offer to leave out unsettled labels of routes that failed their audit, and a preview locks nothing."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.models.snapshots import Snapshot
from corpus.models import ExportRecord, Label, Pair
from judges.models import Campaign, Work
from tests.admin_site import ROUTE, audited, only_collection, people_at_work
from tests.factories import client_of
from tests.kept_scene import built_once
from tests.reading import flat

pytestmark = pytest.mark.django_db
SET = {"teacher": "labels", "split": "1"}


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    settings.VAR = tmp_path / "var"
    return settings.VAR


@pytest.fixture
@built_once
def books():
    """8 labels of no audited route, 50 of a route that failed: people settled 20 of these."""
    collection = only_collection()
    campaign = audited(collection, right=20, wrong=30)
    for number, pair in enumerate(Pair.objects.filter(audits__campaign=campaign).order_by("pk")):
        Label.objects.create(pair=pair, grade=1, origin="people" if number < 20 else campaign.policy)
    return collection


@pytest.fixture
def charlie(books):
    return client_of(people_at_work(books)["charlie"])


def export(tmp_path: Path, *options: str, name: str = "csv") -> tuple[list[str], dict]:
    folder = tmp_path / f"{name}{len(options)}"
    call_command("export", "books", "--format", name, "--out", str(folder), *options, stdout=StringIO())
    manifest = json.loads((folder / "manifest.json").read_text())
    return (folder / manifest["files"][0]["name"]).read_text().splitlines(), manifest


@pytest.mark.parametrize("name", ["csv", "qrels", "beir"])
def test_unsettled_labels_of_failed_routes_are_left_out_and_the_manifest_says_which(books, tmp_path, name):
    options = ("--split", "1", "--near-duplicates", "off") if name == "beir" else ()
    _lines, whole = export(tmp_path, *options, name=name)
    _lines, less = export(tmp_path, *options, "--leave-out-failed", name=name)
    assert whole["counts"]["rows"] - less["counts"]["rows"] == 30 and "left_out" not in whole
    assert less["counts"]["origins"]["people"] == whole["counts"]["origins"]["people"]
    found = less["left_out"]
    assert (found["pairs"], found["reason"]) == (30, "unsettled labels of routes that failed their label audit")
    assert found["routes"] == [
        {
            "collection": "books", "campaign": Campaign.objects.get().number, "route": ROUTE,
            "audited": 50, "wrong": 30, "pairs": 30,
        }
    ]  # fmt: skip
    if name == "beir":
        assert [n for reason, n in less["counts"]["left_out"].items() if "failed its label audit" in reason] == [30]


def test_a_pair_that_a_later_campaign_labelled_stays(books, tmp_path):
    first = Campaign.objects.get()
    later = Campaign.objects.create(collection=books, policy="single", panel="main")
    pair = Label.objects.filter(pair__audits__campaign=first).exclude(origin="people").first().pair
    Work.objects.create(campaign=later, pair=pair, state="labelled", label=1, stratum="r0.m1.y")
    _lines, manifest = export(tmp_path, "--leave-out-failed")
    assert manifest["left_out"]["pairs"] == 29


def test_the_page_warns_in_the_overviews_words_and_offers_to_leave_them_out(charlie):
    def reasons(page: str) -> list[str]:
        start = page.index('class="readiness')
        return re.findall(r"<li>(.*?)</li>", page[start : page.index("</ul>", start)])

    address = "/c/books/quality/readiness/"
    fragment = flat(charlie.get(address, headers={"HX-Request": "true"}).text)
    assert "1 route (50 pairs)" in reasons(fragment)[0] and reasons(fragment) == reasons(
        flat(charlie.get("/c/books/").text)
    )
    assert charlie.get(address).url == "/c/books/quality/"
    page = flat(charlie.get("/c/books/exports/").text)
    assert f'hx-get="{address}" hx-trigger="load"' in page
    assert re.search(r'name="leave_out_failed"[^>]*>Leave out 30 pairs', page)
    assert not re.search(r'name="leave_out_failed"[^>]*checked', page), "off until it is asked for"
    assert '<p class="notice warn">Exporting locks' in page
    charlie.post("/c/books/exports/make/", {"format": "csv", "leave_out_failed": "on"})
    snapshot = Snapshot.objects.get()
    assert snapshot.manifest["left_out"]["pairs"] == 30
    assert flat(charlie.get("/c/books/exports/").text).count("30 pairs of routes") == 2, "the offer, and the export"


def test_a_preview_has_counts_and_first_rows_and_locks_nothing(charlie, var):
    def preview(**values):
        answer = charlie.post("/c/books/exports/preview/", {**SET, **values}, headers={"HX-Request": "true"})
        return answer.status_code, flat(answer.text)

    options = {"leave_out_failed": "on", "origins": ["people", "debate+ensemble"]}
    for name, words in (
        ("csv", ('<th scope="row">1 relevant</th>', "query_id,doc_id,grade,origin", "30 pairs of routes")),
        ("judgments", ()),
        ("prism", ('<th scope="row">train</th>', "<pre")),
        ("parquet", ('<th scope="row">train</th>', "<pre")),
    ):
        status, part = preview(format=name, **options)
        assert status == 200 and part.startswith('<section id="preview"') and "<html" not in part
        assert [word for word in words if word not in part] == [], name
    page = flat(charlie.post("/c/books/exports/preview/", {"format": "parquet", **options, **SET}).text)
    assert re.search(r'name="leave_out_failed"[^>]*checked', page) and 'value="parquet" checked' in page
    assert not Snapshot.objects.exists() and not ExportRecord.objects.exists()
    assert not list(var.rglob("*.jsonl")), "it leaves nothing behind"
    for values, word in (
        ({"format": "nonsense"}, ""),
        ({"format": "prism", "teacher": "scores"}, "no teacher score"),
        ({"format": "prism", "split": "7"}, "Share of queries"),
    ):
        status, part = preview(**values)
        assert status == 422 and word in part


def test_exports_and_training_lead_to_each_other(charlie):
    assert 'href="/c/books/exports/?format=prism"' in charlie.get("/c/books/training/").text
    assert 'value="prism" checked' in flat(charlie.get("/c/books/exports/?format=prism").text)
    charlie.post("/c/books/exports/make/", {"format": "prism", **SET})
    exports = flat(charlie.get("/c/books/exports/").text)
    link = re.search(r'href="([^"#]+)[^"]*"[^>]*>Train a reranker on this export', exports)
    folder = re.escape(Snapshot.objects.get().folder)
    assert link and re.search(rf'value="{folder}" selected', charlie.get(link[1]).text)
