"""The whole loop on a collection made to be learned: the tuned model beats its base, on shuffled labels it does not."""

import json

import pytest

torch = pytest.importorskip("torch")

from tests.stages import first_slow  # noqa: E402
from tests.training.trainers.learnable import export  # noqa: E402
from tests.training_sets import ask  # noqa: E402
from training.trainers.training import train_model  # noqa: E402

WAYS = {
    "prism": ("tiny:qwen3", {"epochs": 1, "learning_rate": 0.003, "evaluate_every": 45}),
    "cross-encoder": ("tiny:encoder", {}),
}


def job(folder, recipe, *, shuffled=False):
    """A job on the learnable collection."""
    base, options = WAYS[recipe]
    return ask(folder, recipe, export(folder / "data", shuffled=shuffled), base, **options)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", sorted(WAYS))
def test_the_tuned_model_beats_its_base_on_queries_that_it_never_saw_and_its_card_says_so(recipe, tmp_path):
    result = train_model(job(tmp_path, recipe), lambda: False)
    gain = result["gain"]
    assert gain["shown"] and gain["difference"] > 0.2 and gain["p"] < 0.05 and gain["queries"] == 15
    assert gain["words"].startswith("gain: nDCG@10 +")
    assert result["loss_last"] < result["loss_first"] and result["merge_difference"] <= 1e-4
    assert result["evaluation"]["merged"]["auc"] > 0.9 > result["evaluation"]["base"]["auc"]
    text = (tmp_path / "out" / "README.md").read_text()
    assert gain["words"] in text and "**tiny model, CPU**" in text and "| teacher | labels |" in text
    found = json.loads((tmp_path / "out" / "reranker.json").read_text())
    assert found["words"] == "tiny model, CPU" and found["gain"] == gain and found["steps"] == result["steps"]
    assert found["calibration"]["reason"] == "" and found["calibration"]["a"] > 0
    assert found["dataset"] == "learnable" and len(found["dataset_sha256"]) == 64


@pytest.mark.parametrize("recipe", first_slow(sorted(WAYS)))
def test_on_shuffled_labels_no_gain_is_shown_and_said(recipe, tmp_path):
    result = train_model(job(tmp_path, recipe, shuffled=True), lambda: False)
    assert not result["gain"]["shown"] and result["gain"]["p"] >= 0.05
    assert result["gain"]["words"].startswith("no gain shown: p = ")
    assert result["gain"]["words"] in (tmp_path / "out" / "README.md").read_text()
