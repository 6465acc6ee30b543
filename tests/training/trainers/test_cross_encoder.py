"""Recipe `cross-encoder`: rows, losses by hand; a tuned model beats its base, and on shuffled labels it does not."""

import json
import math

import pytest

pytest.importorskip("torch")

import torch

from corpus.errors import BadInput
from tests.stages import first_slow
from tests.training.trainers.learnable import export, pairs
from tests.training_sets import ask
from training.published.tiny_bases import tiny_encoder
from training.recipes.data import Example, TrainingSet
from training.recipes.job_folder import JobFolder
from training.recipes.table import recipe_options
from training.trainers.callback import JobCallback
from training.trainers.cross_encoder import CrossEncoderRecipe, build_rows
from training.trainers.recipe import TrainingTask
from training.trainers.training import train_model


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The tiny encoder."""
    return tiny_encoder(tmp_path_factory.mktemp("bases") / "encoder")


def one(query_id, label, teacher=None, document="a document"):
    """A row of one query."""
    return Example("a query", document, "", label, teacher, "", query_id, "d")


def recipe(base, loss, rows, **changes):
    """The recipe at work on some rows."""
    chosen = recipe_options("cross-encoder", {"preset": "tiny", "loss": loss} | changes)
    data = TrainingSet(rows, [], "labels", "learnable", "0" * 64)
    return CrossEncoderRecipe(TrainingTask("cross-encoder", base, "tiny:encoder", data, chosen, "cpu", True))


def test_rows_have_labels_teacher_scores_or_queries_with_their_best_documents_or_are_refused():
    rows = [one("q", 1, 0.3), one("q", None, 0.4), one("q", 0)]
    targets = {loss: [row.targets[0] for row in build_rows(rows, [9] * 3, loss=loss)] for loss in ("bce", "mse")}
    assert targets == {"bce": [1.0, 0.4, 0.0], "mse": [0.3, 0.4, 0.0]}
    rows = [one("a", 0), one("b", 1), one("a", 1), one("a", 0), one("c", 0), one("c", 0)]
    found = build_rows(rows, [1, 2, 4, 8, 16, 32], loss="lambda", documents=2)
    assert [feature.targets for feature in found] == [[1.0, 0.0]]  # b and c have nothing to order
    assert found[0].pairs == [2, 0] and found[0].tokens == 4 + 1
    with pytest.raises(BadInput, match="Query q, document d: "):
        build_rows([one("q", None)], [9], loss="bce")
    with pytest.raises(BadInput, match="lambda needs queries"):
        build_rows([one("q", 1), one("q", 1)], [9, 9], loss="lambda")


def begin(work, folder):
    """The recipe's trainer on a job's folder."""
    folder.mkdir(exist_ok=True)
    return work.trainer(JobCallback(JobFolder(folder), work.task, lambda: False, work.dev_margins))


@pytest.mark.parametrize("loss", ["bce", "mse", "lambda"])
def test_a_step_in_several_passes_has_the_gradient_of_the_librarys_own_batch(base, loss, tmp_path):
    """Whatever the token budget: that of sentence-transformers' trainer on all rows at once, without dropout."""
    found = []
    for budget in (64, 10_000):
        changes = {"token_budget": budget, "max_length": 64, "batch": 4}
        trainer = begin(recipe(base, loss, pairs(queries=5), **changes), tmp_path / str(budget))
        trainer.model.eval()  # dropout draws anew for each pass
        rows = trainer.epochs.step(0)
        assert (len(trainer.passes(rows)) > 1) == (budget == 64)
        trainer.gradients(rows)
        found.append(trainer.model[0].auto_model.classifier.weight.grad.clone())
    trainer.clear_gradients()
    batch = trainer.data_collator([trainer.train_dataset[row] for row in rows])
    trainer.compute_loss(trainer.model, batch).backward()
    plain = trainer.model[0].auto_model.classifier.weight.grad
    assert plain.abs().max() > 0 and all(torch.allclose(one, plain, atol=1e-6) for one in found)


def test_mse_and_lambda_of_two_documents_by_hand(base, tmp_path):
    """Of lambda the pair costs |change of nDCG when the two swap| x log2(1 + exp(s_worse - s_better))."""

    def opened(loss, *rows):
        work = recipe(base, loss, rows)
        begin(work, tmp_path / loss)
        work.model.eval()
        return work, work.dev_margins(rows)

    work, margins = opened("mse", one("q", None, 0.25, "the list is read"), one("r", None, 0.75, "a value"))
    wanted = ((torch.sigmoid(torch.tensor(margins)) - torch.tensor([0.25, 0.75])) ** 2).sum()
    assert float(work.forward([0, 1])["mse"].detach()) == pytest.approx(float(wanted), abs=1e-6)
    work, (better, worse) = opened("lambda", one("q", 1, document="the list is read"), one("q", 0, document="a value"))
    wanted = (1 - 1 / math.log2(3)) * math.log2(1 + math.exp(worse - better))
    assert float(work.forward([0])["lambda"].detach()) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["bce", "mse", "lambda"])
def test_the_loss_falls_and_a_checkpoint_brings_the_weights_back(base, loss, tmp_path):
    changes = {"epochs": 30, "max_steps": 90, "schedule": "constant", "clip": 0.0}
    changes["batch"] = 6 if loss == "lambda" else 16
    work = recipe(base, loss, pairs(queries=60, seed=1), **changes)
    trainer = begin(work, tmp_path)
    step, _ = trainer.callback.train(trainer)
    losses = [line["loss"] for line in JobFolder(tmp_path).read_metrics() if "loss" in line]
    assert step == len(losses) == 90 and sum(losses[-10:]) < 0.5 * sum(losses[:10])
    dev = pairs(queries=3, seed=2, first=100)
    before = work.dev_margins(dev)
    assert work.trained(JobFolder(tmp_path).checkpoint(90)).trained_margins(dev) == pytest.approx(before, abs=1e-6)


WAYS = {
    "prism": ("tiny:qwen3", {"epochs": 1, "learning_rate": 0.003, "evaluate_every": 45}),
    "cross-encoder": ("tiny:encoder", {}),
}


def learn(folder, recipe, *, shuffled=False):
    """The result of a job on the learnable collection."""
    base, options = WAYS[recipe]
    job = ask(folder, recipe, export(folder / "data", shuffled=shuffled), base, **options)
    return train_model(job, lambda: False)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", sorted(WAYS))
def test_the_tuned_model_beats_its_base_on_queries_that_it_never_saw_and_its_card_says_so(recipe, tmp_path):
    result = learn(tmp_path, recipe)
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
    result = learn(tmp_path, recipe, shuffled=True)
    assert not result["gain"]["shown"] and result["gain"]["p"] >= 0.05
    assert result["gain"]["words"].startswith("no gain shown: p = ")
    assert result["gain"]["words"] in (tmp_path / "out" / "README.md").read_text()
