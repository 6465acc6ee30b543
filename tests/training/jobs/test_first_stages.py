"""What a training is compared with: the run that its negatives came from, else BM25, over queries it never saw."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from corpus.models import Collection
from tests.rankings import make_run
from tests.training.comparisons.test_losses import make_birds
from tests.training.jobs.test_training_gains import first_stage
from tests.training_sets import write_set
from training.jobs import lifecycle
from training.jobs.first_stage import read_first_stage
from training.jobs.inputs import PAIRS, write_inputs
from training.jobs.significance import compare_models
from training.models import Job, Model
from training.recipes.job_folder import JobFolder

pytestmark = pytest.mark.django_db


@pytest.fixture
def birds(db: None) -> Collection:
    return make_birds()


def start(birds: Collection | None, run: dict[str, str] | None = None, **options: Any) -> tuple[Job, JobFolder]:
    """A training on a set whose dev split is the collection's queries; `run`: as the set's manifest has it."""
    rows = write_set(Path(settings.VAR) / "exports" / "birds" / f"set-{Job.objects.count()}")
    manifest = json.loads((rows / "manifest.json").read_text())
    manifest["options"]["run"] = run
    (rows / "manifest.json").write_text(json.dumps(manifest))
    asked: dict[str, Any] = {"recipe": "prism", "data": rows, "base": "tiny:qwen3", "out": None, "option_values": {}}
    job = lifecycle.begin_training(**asked, collection=birds, **options)
    folder = JobFolder(Path(job.folder))
    write_inputs(job, folder)
    return job, folder


def test_a_training_is_compared_with_bm25_on_its_dev_queries(birds: Collection) -> None:
    _, folder = start(birds)
    stage = read_first_stage(folder)
    assert stage is not None and stage.name == "BM25"
    assert [line["query_id"] for line in stage.lines] == ["q16", "q17", "q18", "q19"]
    assert len(stage.lines[0]["documents"]) == 20 and stage.qrels["q16"]["d16-1"] == 1


def test_the_run_that_gave_a_sets_negatives_is_what_the_model_would_rerank(birds: Collection) -> None:
    make_run(birds, "dense", {f"q{number}": [f"d{number}-0", f"d{number}-1"] for number in range(16, 20)})
    _, folder = start(birds, {"name": "dense.run", "sha256": "0"})
    stage = read_first_stage(folder)
    assert stage is not None and stage.name == "run dense"
    assert [one["doc_id"] for one in stage.lines[0]["documents"]] == ["d16-0", "d16-1"]
    _, folder = start(birds, {"name": "other.run", "sha256": "0"})
    assert (found := read_first_stage(folder)) is not None and found.name == "BM25"


def test_a_set_from_elsewhere_and_a_point_of_a_curve_are_compared_with_their_base_alone(birds: Collection) -> None:
    subset = {"points": [10], "labels": 10, "order": "time", "seed": 0}
    for job, folder in (start(None), start(birds, subset=subset)):
        assert not (folder.path / PAIRS).exists() and read_first_stage(folder) is None, job.options


def test_job_and_model_show_first_stage_base_and_model_side_by_side(birds: Collection, alice: Client) -> None:
    job, _folder = start(birds)
    stage = first_stage(12, {"d0": 1, "d1": 0})
    orders = stage.compare([0.0, 0.0, 1.0] * 12, [0.0, 1.0, 0.5] * 12, random_head=True)
    first, base, tuned = (orders["per_query"][name]["nDCG@10"] for name in ("BM25", "base", "tuned"))
    gain = compare_models(base, tuned, first=first, random_head=True)
    kept = {name: value for name, value in orders.items() if name != "per_query"} | {"choosing": False}
    job.result = {"gain": gain, "rankings": kept, "evaluation": {"base": {"auc": 0.5}}}
    job.state, job.words = "finished", "CPU"
    job.save()
    model = lifecycle.publish_model(job)
    assert Model.objects.get().summary["rankings"]["queries"] == 12
    for address in (f"jobs/{job.number}", f"models/{model.pk}"):
        page = alice.get(f"/c/birds/training/{address}/").content.decode()
        assert "Ranks below BM25 (-0.500, 95% -0.500 to -0.500): do not use it" in page, address
        assert "12 dev queries" in page and "random head" in page and "tuned vs BM25" in " ".join(page.split())
        assert 'class="notice warn"' in page, address
        assert "fewer assumed negatives" in page
