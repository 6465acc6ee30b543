"""Pages of training without a worker: empty states, forms, a finished job, files, and what a deletion takes along."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from corpus.collections.removal import delete_collection
from corpus.models import Collection
from jobs import leases
from tests.factories import make_collection
from tests.training_sets import write_set
from training.jobs import lifecycle
from training.jobs.pages import explain_no_gain
from training.jobs.significance import compare_models
from training.jobs.supervisor import supervise_job
from training.models import Job, Model
from training.recipes import tracking
from training.recipes.job_folder import JobFolder
from training.recipes.metrics import summarize_lengths
from training.recipes.table import RECIPES

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(birds: Collection) -> Path:
    folder = Path(settings.VAR) / "exports" / "birds" / "one"
    return folder if folder.exists() else write_set(folder)


def finished(collection: Collection, data: Path, kind: str = "train", **result: Any) -> Job:
    """A job with two steps in its folder, and its model."""
    options = {"recipe": "prism", "base": "tiny:qwen3", "data": str(data), "out": str(data / "nowhere"), "options": {}}
    job = lifecycle.begin_job(kind=kind, options={**options, "name": "m"}, collection=collection, user="alice")
    folder = JobFolder(Path(job.folder))
    for step in (1, 2):
        folder.append_metrics({
            "step": step, "steps": 2, "loss": 3.0 / step, "lr": 1e-3, "tokens": 10, "tokens_per_s": 5.0,
            "memory_mb": 9.0, "seconds": 1.0 * step, "token_budget": 64,
        })  # fmt: skip
    folder.append_metrics(
        {"step": 2, "dev": {"label_pearson": 0.5, "teacher_pearson": None, "auc": 0.75, "accuracy": 0.5, "ndcg@10": 1}}
    )
    Job.objects.filter(pk=job.pk).update(state="finished", words="tiny model, CPU", done=2, total=2, result=result)
    job.refresh_from_db()
    return job


def test_without_an_export_the_page_says_what_to_do(alice):
    page = alice.get("/c/birds/training/").content.decode()
    assert "No jobs yet." in page and "Create a training set" in page and "<form" not in page.split("<main")[1]


def test_a_form_that_cannot_be_started_keeps_what_was_typed(alice, rows):
    asked = {"data": str(rows), "recipe": "prism", "base": "other", "device": "cpu"}
    asked |= {"base_path": " ", "epochs": "7"}
    answer = alice.post("/c/birds/training/start/", asked)
    page = answer.content.decode()
    assert answer.status_code == 422 and "Enter a model folder" in page and 'value="7' in page
    assert alice.post("/c/birds/training/start/", {**asked, "data": "/etc"}).status_code == 422
    assert not Job.objects.exists()


def test_a_started_training_waits_on_its_own_page(alice, rows):
    asked = {"data": str(rows), "recipe": "prism", "base": "tiny:qwen3", "device": "cpu", "max_steps": "5"}
    answer = alice.post("/c/birds/training/start/", asked)
    job = Job.objects.get()
    assert answer.status_code == 302 and answer["Location"] == f"/c/birds/training/jobs/{job.number}/"
    assert job.options["options"] == {"preset": "tiny", "max_steps": 5} and job.made_by == "alice"
    fragment = alice.get(answer["Location"], headers={"HX-Request": "true"})
    assert fragment.status_code == 200 and b"No trainer is running" in fragment.content
    assert alice.post(f"{answer['Location']}cancel/").status_code == 302
    assert alice.get(answer["Location"], headers={"HX-Request": "true"}).status_code == 286
    assert b"Resume from the last checkpoint" in alice.get(answer["Location"]).content
    assert alice.post(f"{answer['Location']}explode/").status_code == 404


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_begins_with_its_own_format_and_base_and_refuses_others(alice, birds, recipe):
    entry = RECIPES[recipe]
    for form in ("prism", "erank-sft", "rtriever"):
        folder = Path(settings.VAR) / "exports" / "birds" / form
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text(json.dumps({"format": form}))
        asked = {"data": str(folder), "recipe": recipe, "device": "cpu", "base": "tiny:qwen3"}
        for base in ("tiny:qwen3", "tiny:encoder"):
            answer = alice.post("/c/birds/training/start/", {**asked, "base": base})
            fits = entry.base == "embedder" or (base == "tiny:encoder") == (entry.base == "encoder")
            assert answer.status_code == (302 if fits and form == entry.format else 422), (form, base)
            if form != entry.format:
                told = f"The recipe {recipe} learns from exports in the format {entry.format}; this one is {form}."
                assert told in answer.content.decode()
            if not fits:
                assert f"recipe {recipe} cannot train" in answer.content.decode()
    assert all(job.options["options"] == {"preset": "tiny"} for job in Job.objects.all())
    assert Job.objects.count() == (2 if entry.base == "embedder" else 1)


def test_a_tracker_that_is_not_installed_is_refused_in_one_line_before_the_job(alice, rows, monkeypatch):
    name = "wandb"
    monkeypatch.setattr(lifecycle, "find_spec", lambda module: "there")  # Trainings run on this machine.
    monkeypatch.setattr(tracking, "find_spec", lambda module: None)
    asked = {"data": str(rows), "recipe": "prism", "base": "tiny:qwen3", "device": "cpu", "tracking": name}
    answer = alice.post("/c/birds/training/start/", asked)
    words = f"Tracking {name} needs the package {name}, which is not installed: run pip install {name}"
    assert answer.status_code == 422 and words in answer.content.decode() and not Job.objects.exists()
    page = alice.post("/c/birds/training/start/", asked, headers={"accept-language": "zh-CN"}).content.decode()
    assert f"Tracking {name} 需要软件包 {name}" in page and "not installed" not in page


def test_an_embedding_model_is_not_offered_as_a_reranker(alice, birds, rows):
    model = lifecycle.publish_model(finished(birds, rows))
    folder = Path(settings.VAR) / "models" / "birds" / "embedder"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reranker.json").write_text("{}")
    Model.objects.filter(pk=model.pk).update(recipe="rtriever", folder=str(folder))
    address = f"/c/birds/training/models/{model.pk}/"
    page = alice.get(address).content.decode()
    assert "is an embedding model" in page and "Rerank all queries" not in page and "Threshold" not in page
    for act in ("evaluate", "rerank", "order", "generate"):
        assert "which scores no" in alice.post(f"{address}{act}/", follow=True).text and "which scores no" not in page
    assert Job.objects.count() == 1


def test_a_finished_training_shows_its_curve_lengths_and_rate_and_says_what_it_was(alice, birds, rows):
    job = finished(birds, rows, gain={"words": "no gain shown: p = 0.4"}, evaluation={"base": {"auc": 0.5}})
    model = lifecycle.publish_model(job)
    page = alice.get(f"/c/birds/training/jobs/{job.number}/").content.decode()
    assert page.count("tiny model, CPU") >= 4 and "Loss from" in page and "0.750" in page and "undefined" in page
    chart = alice.get(f"/c/birds/training/jobs/{job.number}/?chart=loss&as=csv")
    assert chart.status_code == 200 and b"3" in chart.content
    assert alice.get(f"/c/birds/training/jobs/{job.number}/?chart=other").status_code == 404
    shown = alice.get(f"/c/birds/training/models/{model.pk}/").content.decode()
    assert "No gain shown: p = 0.4 (tiny model, CPU). No dev query" in shown and "folder is missing" in shown
    assert "No gain shown" not in alice.get("/c/birds/training/").content.decode()
    assert "no gain shown" in alice.get("/c/birds/training/").content.decode()
    assert "training rows" not in page and "MFU" not in page
    folder = JobFolder(Path(job.folder))
    folder.update_state(row_lengths=summarize_lengths([10, 20, 30, 40, 400], 100))
    folder.append_metrics({**folder.read_metrics()[1], "mfu": 0.4567})
    page = alice.get(f"/c/birds/training/jobs/{job.number}/").content.decode()
    assert "training rows" in page and "(MFU)" in page and "0.457" in page
    assert "1 of 5 rows" in page and "100 tokens" in page


@pytest.mark.parametrize(
    ("base", "tuned", "queries", "tiny", "told"),
    [
        (0.3, 0.6, 20, True, ""),
        (0.3, 0.6, 4, True, "Too few dev queries (4): create an export with a smaller share"),
        (1.0, 1.0, 20, True, "ranks these queries almost perfectly already"),
        (0.3, 0.3, 20, True, "The base model is tiny and has random weights"),
        (0.3, 0.2, 20, False, "ranks these queries worse"),
        (0.3, 0.3, 20, False, "The difference is within chance"),
        (0.3, 0.3, 0, False, "No dev query with a relevant document"),
    ],
)
def test_where_nothing_is_gained_the_page_says_why_in_one_line(base, tuned, queries, tiny, told):
    sides = [{f"q{n}": value for n in range(queries)} for value in (base, tuned)]
    words = explain_no_gain(compare_models(*sides), tiny=tiny)
    assert told in words and bool(words) == bool(told) and "\n" not in words


def test_an_evaluation_compares_before_and_after(alice, birds, rows):
    names = ("nDCG@10", "RR@10", "R@20")
    values = {"BM25": 0.5, "base": 0.1, "tuned": 0.3}
    paired = {"measure": "nDCG@10", "difference": 0.2, "low": 0.1, "high": 0.3, "p": 0.01}
    job = finished(
        birds, rows, kind="evaluate", queries=8, caveat="Chosen apart.",
        measures={name: dict.fromkeys(names, value) for name, value in values.items()},
        per_query={name: {"nDCG@10": {"q1": value, "q2": value}} for name, value in values.items()},
        compared=[{**paired, "one": "tuned", "other": "base"}, {**paired, "one": "tuned", "other": "BM25", "p": 0.5}],
    )  # fmt: skip
    page = alice.get(f"/c/birds/training/jobs/{job.number}/").content.decode()
    for shown in ("8 dev queries", "(tiny model, CPU)", "+0.200", "no significant difference"):
        assert shown in page
    assert "2 better" in page and "0 worse" in page and "Chosen apart." in page


def test_files_are_those_of_the_job_and_no_others(alice, birds, rows):
    job = finished(birds, rows)
    (Path(job.folder) / "tuned.run").write_text("q Q0 d 1 1 t\n")
    address = f"/c/birds/training/jobs/{job.number}/files"
    assert b"".join(alice.get(f"{address}/tuned.run").streaming_content) == b"q Q0 d 1 1 t\n"
    metrics = (Path(job.folder) / "metrics.jsonl").read_bytes()
    assert metrics and b"".join(alice.get(f"{address}/metrics.jsonl").streaming_content) == metrics
    for name in ("job.json", "base.run", "..%2Fjob.json", "state.json"):
        assert alice.get(f"{address}/{name}").status_code == 404


def test_jobs_and_models_of_another_collection_do_not_exist(alice, birds, rows):
    other = finished(make_collection("stones"), rows)
    model = lifecycle.publish_model(other)
    jobs, models = f"jobs/{other.number}/", f"models/{model.pk}/"
    for address in (jobs, models, f"{models}card", f"{jobs}files/log.txt"):
        assert alice.get(f"/c/birds/training/{address}").status_code == 404
    assert alice.post(f"/c/birds/training/models/{model.pk}/evaluate/").status_code == 404
    assert alice.post(f"/c/birds/training/jobs/{other.number}/cancel/").status_code == 404


def test_a_deleted_collection_takes_its_jobs_and_models_along(birds, rows):
    job = finished(birds, rows)
    lifecycle.publish_model(job)
    delete_collection(birds)
    assert not Job.objects.exists() and not Model.objects.exists() and not Path(job.folder).exists()


def test_the_demos_installer_is_seen_on_the_page(alice):
    path = Path(settings.VAR) / "training-extra.json"
    known = {"state": "installing", "done": 12, "of": 56, "line": "installing packages", "seconds": 3.0}
    try:
        for more, words in (
            ({}, "12 of 56 packages"),
            ({"state": "failed", "line": "No space left"}, "Training is not installed: No space left."),
        ):
            path.write_text(json.dumps({**known, **more}))
            assert words in alice.get("/c/birds/training/").text
    finally:
        path.unlink()


def test_a_page_names_base_models_of_this_site_or_of_the_hub_and_no_other_folder(alice, rows, settings, tmp_path):
    settings.BASE_MODELS = tmp_path / "bases"
    (tmp_path / "bases" / "owl").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    asked = {"data": str(rows), "recipe": "prism", "base": "other", "device": "cpu"}

    def begun_with(name: str) -> tuple[int, str]:
        answer = alice.post("/c/birds/training/start/", {**asked, "base_path": name})
        return answer.status_code, str(Job.objects.order_by("-pk").values_list("options__base", flat=True).first())

    for name in ("/etc", str(tmp_path / "secret"), "../secret", "owl/../../secret", "~", ".", "config", "nobody"):
        answer = alice.post("/c/birds/training/start/", {**asked, "base_path": name})
        assert answer.status_code == 422 and "nor a hub id" in answer.content.decode(), name
    assert not Job.objects.exists()
    assert begun_with("owl") == (302, str(tmp_path / "bases" / "owl"))
    assert begun_with("birds/owl") == (302, "birds/owl")
    assert begun_with("training/engine") == (302, "training/engine"), "a hub id, whatever lies where the site runs"


def test_a_trainer_that_does_not_see_a_jobs_files_says_so_at_once(birds, rows):
    job = lifecycle.begin_training(
        recipe="prism", data=rows, base="tiny:qwen3", out=None, option_values={}, collection=birds, user="alice"
    )
    (Path(job.folder) / "job.json").unlink()
    claimed = leases.claim(Job, device="cpu")
    assert claimed is not None
    supervise_job(claimed, lambda: False)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED and not job.attempts > 1
    assert "cannot see" in job.error and f"{job.folder}/job.json" in job.error and "QUORUM_VAR" in job.error
    assert job.ended_at is not None
