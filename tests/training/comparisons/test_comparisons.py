"""Base, SFT, RL and SFT + RL side by side, and the three rewards, with intervals (ERank tables 5 and 6)."""

import json
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from corpus.models import Collection
from tests.training.trainers.learnable import export_scores
from training.comparisons.tabling import TrainedModel, group_models
from training.jobs import lifecycle
from training.jobs.held_out import HeldOut, read_held_out
from training.jobs.significance import compare_models
from training.models import Job, Model

MEANS = {"base": 0.3, "sft": 0.5, "rl": 0.45, "rr": 0.6, "ndcg": 0.58, "se": 0.5}


def values(mean: float, seed: int, queries: int = 30) -> dict[str, float]:
    noise = np.random.default_rng(seed).normal(0, 0.03, queries)
    return {f"q{place}": float(mean + one - noise.mean()) for place, one in enumerate(noise)}


BASE = values(MEANS["base"], 0)
SFT = values(MEANS["sft"], 1)


def trained() -> list[TrainedModel]:
    """A base, its SFT and RL, and what three rewards made of the SFT."""
    rows = [("sft", "erank-sft", "owner/base", BASE, SFT, ""),
            ("rl", "erank-grpo", "owner/base", BASE, values(MEANS["rl"], 2), "rr")]  # fmt: skip
    for place, reward in enumerate(("se", "rr", "ndcg")):
        rows.append((reward, "erank-grpo", "/m/sft", SFT, values(MEANS[reward], 3 + place), reward))
    return [
        TrainedModel(place, name, recipe, base, f"/m/{name}", HeldOut(before, after), reward)
        for place, (name, recipe, base, before, after, reward) in enumerate(rows, 1)
    ]


def publish_all(birds: Collection, folder: Path) -> list[Model]:
    """These models as their trainings published them."""
    made = []
    for one in trained():
        out = folder / one.name
        out.mkdir(exist_ok=True)
        per_query = {"base": one.held_out.base, "tuned": one.held_out.tuned, "choosing": False}
        (out / "reranker.json").write_text(json.dumps({"per_query": per_query}))
        (out / "config.json").write_text("{}")
        options = {"recipe": one.recipe, "base": one.base.replace("/m/", f"{folder}/"), "data": "/d", "out": str(out),
                   "options": {"reward": one.reward} if one.reward else {}}  # fmt: skip
        job = lifecycle.begin_job(kind="train", options=options, collection=birds)
        Job.objects.filter(pk=job.pk).update(state="finished", words="tiny model, CPU")
        job.refresh_from_db()
        made.append(lifecycle.publish_model(job))
    return made


def test_the_table_has_the_rows_of_the_paper_with_changes_against_the_start_and_the_untuned_base():
    (group,) = group_models(trained())
    rows = [(row.role, row.reward) for row in group["rows"]]
    both = [("SFT + RL", reward) for reward in ("rr", "ndcg", "se")]
    assert rows == [("base", ""), ("SFT", ""), ("RL", "rr"), *both]
    assert group["queries"] == 30 and not group["choosing"]
    for row in group["rows"]:
        assert row.measure.value == pytest.approx(MEANS[row.reward if row.role == "SFT + RL" else row.role.lower()])
        assert row.measure.low < row.measure.value < row.measure.high
    by_name = {row.name: row for row in group["rows"]}
    rr, rl = by_name["rr"], by_name["rl"]
    assert rr.start and rr.root and rl.start and rl.root
    start, root = compare_models(SFT, values(0.6, 4)), compare_models(BASE, values(0.6, 4))
    assert (rr.start.difference, rr.root.difference) == pytest.approx((start["difference"], root["difference"]))
    assert rr.start.low < rr.start.difference < rr.start.high and rr.root.low > 0
    assert rl.start.difference == pytest.approx(rl.root.difference)
    se = by_name["se"].start
    assert se is not None and se.low <= 0 <= se.high
    assert group["rows"][0].start is None and group["rows"][0].root is None


def test_models_of_other_queries_stand_apart_without_any_are_left_out_and_a_line_that_begins_with_itself_ends(tmp_path):
    other = TrainedModel(9, "p", "prism", "owner/base", "/m/p", HeldOut(values(0.2, 8, 12), values(0.4, 9, 12)))
    silent = TrainedModel(10, "old", "prism", "owner/base", "/m/old", HeldOut())
    groups = group_models([*trained(), other, silent])
    assert [group["queries"] for group in groups] == [30, 12]
    assert [row.role for row in groups[1]["rows"]] == ["base", "prism"]
    one = TrainedModel(1, "a", "erank-grpo", "/m/a", "/m/a", HeldOut(BASE, SFT))
    (group,) = group_models([one])
    assert [row.role for row in group["rows"]] == ["base", "RL"]
    assert read_held_out(tmp_path) == HeldOut()
    (tmp_path / "reranker.json").write_text('{"kind": "causal"}')
    assert read_held_out(tmp_path) == HeldOut()


def test_the_page_compares_models_with_intervals_and_a_picture(alice, birds, tmp_path):
    address = "/c/birds/training/compare/"
    assert "No model" in alice.get(address).content.decode()
    models = publish_all(birds, tmp_path)
    page = alice.get(address).content.decode()
    assert page.count("SFT + RL</td>") == 3 and page.count("tiny model, CPU") >= 5 and "0.600" in page
    assert all(f"/training/models/{model.pk}/" in page for model in models)
    assert "no significant difference" in page and "30 held-out dev" in page
    csv = alice.get(f"{address}?chart=models-1&as=csv").content.decode().splitlines()
    assert len(csv) == 7 and csv[1].startswith("base · owner/base,0.3")
    assert "Compare trained models" in alice.get("/c/birds/training/").content.decode()


def test_a_published_model_is_offered_as_a_base(alice, birds, tmp_path):
    folder = Path(settings.VAR) / "exports" / "birds" / "scores"
    scores = folder if folder.exists() else export_scores(folder, queries=4, dev=2)
    sft = publish_all(birds, tmp_path)[0]
    asked = {"data": str(scores), "recipe": "erank-grpo", "base": sft.folder, "device": "cpu"}
    assert sft.name in alice.get("/c/birds/training/").content.decode()
    assert alice.post("/c/birds/training/start/", asked).status_code == 302
    job = Job.objects.latest("pk")
    assert job.options["base"] == sft.folder and job.options["options"] == {"preset": "tiny"}
    assert alice.post("/c/birds/training/start/", asked | {"base": "/etc"}).status_code == 422
