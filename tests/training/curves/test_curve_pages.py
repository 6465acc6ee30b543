"""Pages and services of learning curves without a worker: what is asked, refused, shown and resumed."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions.services import Actor
from corpus.errors import BadInput
from corpus.models import Collection
from tests.training.curves.test_curves import write_dated
from tests.training_sets import write_set
from training.curves import services
from training.jobs.outcomes import store_outcome
from training.models import CurvePoint, Job, LearningCurve
from training.recipes import subsets
from training.recipes.job_folder import JobFolder

pytestmark = pytest.mark.django_db
ASKED = {
    "recipe": "prism", "base": "tiny:qwen3", "device": "cpu", "points": "24, 48,96", "order": "time", "max_steps": "5",
}  # fmt: skip


@pytest.fixture
def rows(birds: Collection) -> Path:
    folder = Path(settings.VAR) / "exports" / "birds" / "dated"
    return folder if folder.exists() else write_dated(folder)


def asked(rows: Path, *points: int) -> dict[str, Any]:
    options = {"option_values": {"preset": "tiny"}, "order": "time", "points": list(points)}
    return {"recipe": "prism", "data": rows, "base": "tiny:qwen3", **options}


@pytest.fixture
def curve(birds: Collection, rows: Path) -> LearningCurve:
    return services.begin_curve(**asked(rows, 24, 48, 96), collection=birds, user="alice")


def end_point(point: CurvePoint, folder: Path, state: str = "finished", value: float = 0.5) -> None:
    """The job of a point as its worker leaves it: over, and where it is finished with a model's folder."""
    job = point.job
    options = job.options | {"out": str(folder / str(point.asked))}
    Job.objects.filter(pk=job.pk).update(state=state, options=options, words="tiny model, CPU", done=5, total=5)
    if state == "finished":
        out = folder / str(point.asked)
        out.mkdir(parents=True, exist_ok=True)
        tuned = {f"q{number}": value + number / 1000 for number in range(20)}
        (out / "reranker.json").write_text(json.dumps({"per_query": {"tuned": tuned, "base": tuned}}))


def plan(folder: JobFolder) -> None:
    """What a point's trainer does first."""
    subsets.write_subset(Path(folder.job["data"]), folder.path / "data", "prism", **folder.job["subset"])


def test_a_curve_is_a_training_for_each_point_on_nested_subsets(alice, rows):
    answer = alice.post("/c/birds/training/curves/start/", {**ASKED, "data": str(rows)})
    curve = LearningCurve.objects.get()
    assert answer.status_code == 302 and answer["Location"] == f"/c/birds/training/curves/{curve.number}/"
    points = services.list_points(curve)
    assert [(point.asked, point.labels, point.queries) for point in points] == [(n, None, None) for n in (24, 48, 96)]
    for point in points:
        request = JobFolder(Path(point.job.folder)).job
        subset = {"order": "time", "seed": 0, "points": [24, 48, 96], "asked": point.asked}
        assert request["subset"] == subset and request["data"] == str(rows)
        assert request["options"] == {"preset": "tiny", "max_steps": 5} and point.job.made_by == "alice"
    page = alice.get(answer["Location"]).content.decode()
    assert "time of labelling" in page and "/cancel/" in page and "No trainer is running" in page
    assert "curve" in alice.get("/c/birds/training/curves/").content.decode()
    assert alice.get(answer["Location"], headers={"HX-Request": "true"}).status_code == 200


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"points": "24,4000"}, "Point 4,000 is more than the 96 rows"),
        ({"points": "24,many"}, "is not a whole number"),
        ({"points": ",".join(map(str, range(1, 25)))}, "24 points are too many"),
    ],
)
def test_what_makes_no_curve_is_refused_with_the_form_kept(alice, rows, changes, words):
    answer = alice.post("/c/birds/training/curves/start/", {**ASKED, "data": str(rows), **changes})
    page = answer.content.decode()
    assert answer.status_code == 422 and words in page and 'value="5"' in page
    assert not LearningCurve.objects.exists() and not Job.objects.exists()


def test_the_page_reads_no_set_and_a_job_whose_points_make_no_curve_is_refused_in_one_line(alice, rows, monkeypatch):
    """Two points of the same queries: only who reads the set can know."""

    with monkeypatch.context() as patch:
        for name in ("order_queries", "read_rows", "read_manifest"):
            patch.setattr(subsets, name, None)
        answer = alice.post("/c/birds/training/curves/start/", {**ASKED, "data": str(rows), "points": "24,25"})
    assert answer.status_code == 302
    for point in services.list_points(LearningCurve.objects.get()):
        folder = JobFolder(Path(point.job.folder))
        with pytest.raises(BadInput, match="Point 25 "):
            plan(folder)
        assert not (folder.path / "data").exists()


def test_a_finished_point_says_how_many_labels_its_whole_queries_have(curve):
    job = services.list_points(curve)[0].job
    plan(JobFolder(Path(job.folder)))
    store_outcome(job, JobFolder(Path(job.folder)))
    first = services.list_points(curve)[0]
    assert (first.asked, first.labels, first.queries, first.size) == (24, 24, 4, 24)


def test_a_set_without_times_can_be_ordered_at_random_alone(alice, birds):
    folder = Path(settings.VAR) / "exports" / "birds" / "undated"
    undated = folder if folder.exists() else write_set(folder)
    form = {**ASKED, "data": str(undated)}
    answer = alice.post("/c/birds/training/curves/start/", form)
    assert answer.status_code == 422 and b"does not say when it was labelled" in answer.content
    assert alice.post("/c/birds/training/curves/start/", {**form, "order": "random"}).status_code == 302


def test_only_points_that_are_not_finished_go_on(curve, tmp_path):
    first, second, third = services.list_points(curve)
    end_point(first, tmp_path)
    end_point(second, tmp_path, "failed")
    end_point(third, tmp_path, "cancelled")
    assert services.control_curve(Actor("alice"), curve, "go-on") == [second, third]
    assert [point.job.state for point in services.list_points(curve)] == ["finished", "queued", "queued"]
    with pytest.raises(BadInput):
        services.control_curve(Actor("alice"), curve, "go-on")
    assert len(services.control_curve(Actor("alice"), curve, "cancel")) == 2


def test_a_finished_curve_shows_its_caption_chart_table_and_csv(alice, curve, tmp_path):
    for point, value in zip(services.list_points(curve), (0.5, 0.55, 0.58), strict=True):
        end_point(point, tmp_path, value=value)
    address = f"/c/birds/training/curves/{curve.number}/"
    page = alice.get(address).content.decode()
    assert "The last 48 labels bought +3.0 points (3.0 to 3.0) of nDCG@10 on 20 queries." in page
    assert "500 labels buy about" in page and "labels buy about +" not in page
    assert page.count("tiny model, CPU") >= 2
    csv = alice.get(f"{address}?chart=curve&as=csv").content.decode()
    assert csv.startswith("labels,nDCG@10,") and "\n96,0.58" in csv
    assert alice.get(f"{address}?chart=other").status_code == 404
    assert alice.get(address, headers={"HX-Request": "true"}).status_code == 286


def test_a_failed_point_is_a_gap_on_the_page_and_can_go_on(alice, curve, tmp_path):
    for point, state in zip(services.list_points(curve), ("finished", "failed", "finished"), strict=True):
        end_point(point, tmp_path, state)
    address = f"/c/birds/training/curves/{curve.number}/"
    page = alice.get(address).content.decode()
    assert "has no measure" in page and "there are 2" in page
    assert "\n48,,," in alice.get(f"{address}?chart=curve&as=csv").content.decode()
    assert "Resume the points" in page and alice.post(f"{address}go-on/").status_code == 302
    assert "No changes made" in alice.post(f"{address}go-on/", follow=True).content.decode()
    assert alice.post(f"{address}explode/").status_code == 404


def test_a_command_goes_on_with_its_own_curve_and_refuses_another(rows, tmp_path):
    options = asked(rows, 24, 96)
    assert services.find_curve(tmp_path / "out", **options) is None
    curve = services.begin_curve(folder=tmp_path / "out", **options)
    assert services.find_curve(tmp_path / "out", **options) == curve
    with pytest.raises(BadInput, match="other options"):
        services.find_curve(tmp_path / "out", **asked(rows, 24, 48))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(BadInput, match="is not empty"):
        services.begin_curve(folder=tmp_path / "full", **options)


def test_the_list_of_curves_asks_the_database_the_same_for_more_of_them(alice, birds, rows):
    counts = []
    for _ in range(3):
        services.begin_curve(**asked(rows, 24, 96), collection=birds)
        with CaptureQueriesContext(connection) as found:
            alice.get("/c/birds/training/curves/")
        counts.append(len(found))
    assert counts[1] == counts[2]
