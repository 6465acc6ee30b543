"""A learning curve for real: by the command with its files, resumed, and in a browser."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

pytest.importorskip("torch")

from annotation.models import Role
from corpus.models import Collection
from tests.factories import make_collection, make_member
from tests.looks import check_looks
from tests.training.curves.test_curves import change_rows
from tests.training.trainers.learnable import export
from training.curves.services import list_points, read_point
from training.jobs.significance import compare_models
from training.models import Job, LearningCurve

pytestmark = pytest.mark.django_db(transaction=True)
OPTIONS = ("--preset", "tiny", "--max-steps", 12, "--evaluate-every", 12)


def write_learnable(folder: Path) -> Path:
    """The learnable collection with the times of its labels."""

    def date(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"labelled_at": f"2026-10-01T{int(row['query_id'][1:]) % 24:02}:00:00.000000Z"}

    return change_rows(export(folder, queries=40, dev=24), date)


@pytest.mark.weekly
def test_the_command_trains_every_point_once_and_writes_what_the_curve_says(manage, tmp_path):
    data, out = write_learnable(tmp_path / "data"), tmp_path / "out"
    asked = ("learning_curve", "cross-encoder", "--data", data, "--points", "30,90,240", "--base", "tiny:encoder",
             "--out", out, *OPTIONS, "--json")  # fmt: skip
    waiting = manage(*asked).json
    assert [point["state"] for point in waiting["points"]] == ["waiting"] * 3 and not (out / "curve.json").exists()
    done = manage(*asked, "--wait").json
    assert done["curve"] == waiting["curve"] and done["jobs"] == waiting["jobs"]
    assert json.loads((out / "curve.json").read_text()) == done
    assert done["words"][0].startswith("The last 150 labels ") and done["fit"]
    assert [point["labels"] for point in done["points"]] == [30, 90, 240]
    assert (out / "curve.csv").read_text().startswith("labels,nDCG@10") and (out / "curve.svg").exists()

    points = list_points(LearningCurve.objects.get())
    sets = [json.loads((Path(point.job.folder) / "data" / "manifest.json").read_text()) for point in points]
    assert [one["files"][0]["rows"] for one in sets] == [30, 90, 240]
    assert len({one["files"][1]["sha256"] for one in sets}) == 1
    before, after = (read_point(point.job) for point in points[-2:])
    assert before and after and before.keys() == after.keys() and len(after) == 12
    compared = compare_models(before, after)
    assert done["last"]["difference"] == pytest.approx(compared["difference"]) and done["last"]["queries"] == 12

    # A point that was cut off is trained again; the others stay as they are.
    made = {name: (out / name / "model.safetensors").stat().st_mtime_ns for name in ("30", "240")}
    shutil.rmtree(out / "90")
    Job.objects.filter(pk=points[1].job_id).update(state="cancelled")
    again = manage(*asked, "--wait").json
    assert again["points"] == done["points"] and (out / "90" / "reranker.json").exists()
    assert {name: (out / name / "model.safetensors").stat().st_mtime_ns for name in made} == made
    refused = manage(*asked[:-1], "--learning-rate", "0.5", check=False)
    assert refused.code == 2 and "other options" in refused.err


@pytest.mark.browser
@pytest.mark.weekly
def test_a_curve_is_started_watched_and_read_in_the_browser(new_page, violations, console, worker):
    birds: Collection = make_collection("birds")
    alice = make_member(birds, "alice", Role.ADMIN)
    write_learnable(Path(settings.VAR) / "exports" / "birds" / "curve")
    page = new_page(user=alice.user)
    page.goto("/c/birds/training/curves/")
    page.select_option("[name=recipe]", "cross-encoder")
    page.select_option("[name=base]", "tiny:encoder")
    page.fill("[name=points]", "60,120,9999")
    page.click("summary:has-text('Options')")
    page.fill("[name=max_steps]", "8")
    page.click("button:has-text('Start learning curve')")
    assert "9,999 is more than" in page.inner_text("main")
    console.clear()  # It holds the 422.
    page.fill("[name=points]", "60,120,240")
    page.click("button:has-text('Start learning curve')")
    page.wait_for_url("**/training/curves/*/")
    page.wait_for_function(
        "() => /The last 120 labels/.test(document.querySelector('main').innerText)", timeout=200_000
    )
    page.reload()
    text = page.inner_text("main")
    assert "tiny model, CPU" in text and "on 12 queries" in text and page.locator("figure.chart svg").count() == 1
    page.click("figure.chart .chart-files > summary")
    with page.expect_download() as saved:
        page.click("figure.chart a:has-text('CSV')")
    assert "\n120," in saved.value.path().read_text()
    check_looks(new_page, violations, alice.user, (page.url, "/c/birds/training/curves/"))
    assert console == []
