"""Recipe `ablation`: four losses over groups, by hand, against torch, and never parted."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from corpus.errors import BadInput
from tests.training.trainers.learnable import export
from tests.training_sets import ask, write_set
from training.distillation.ablation import LossAblation
from training.distillation.groups import group_candidates
from training.distillation.losses import list_loss, negative_weights, point_loss, rank_loss
from training.published.tiny_bases import tiny_base
from training.recipes import data, table
from training.recipes.data import Example
from training.recipes.job_folder import JobFolder
from training.trainers.callback import JobCallback
from training.trainers.recipe import TrainingTask
from training.trainers.training import train_model

torch.set_num_threads(1)
LOSSES = table.LOSSES["ablation"]


def doubles(*rows: list[float]) -> Any:
    return torch.tensor(rows, dtype=torch.float64)


def test_the_list_loss_by_hand_and_its_gradient_is_that_of_torchs_kl_div():
    """H1: teacher .75 / .25, student .622459 / .377541, times 4."""
    assert list_loss(doubles([1.0, 0.0]), doubles([0.9, 0.5]), 2.0).tolist() == pytest.approx([0.146967], abs=1e-6)
    # H2, also at scores of 0 and 1, whose logits are bounded.
    scores = doubles([0.9, 0.5, 0.01], [1.0, 0.0, 0.3])
    student = torch.logit(scores, eps=1e-6)
    assert list_loss(student, scores, 2.0).tolist() == pytest.approx([0.0, 0.0], abs=1e-9)
    # H6: with log_target=True, and by hand T (student - teacher) in each group.
    torch.manual_seed(0)
    scores, margins = torch.rand(3, 8, dtype=torch.float64), torch.randn(3, 8, dtype=torch.float64)
    ours, theirs = (margins.clone().requires_grad_() for _ in range(2))
    list_loss(ours, scores, 2.0).sum().backward()
    student = torch.log_softmax(theirs / 2, -1)
    teacher = torch.log_softmax(torch.logit(scores, eps=1e-6) / 2, -1)
    (torch.nn.functional.kl_div(student, teacher, reduction="sum", log_target=True) * 4).backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-12)
    by_hand = 2 * (torch.softmax(margins / 2, -1) - torch.softmax(torch.logit(scores, eps=1e-6) / 2, -1))
    assert torch.allclose(ours.grad, by_hand, atol=1e-12)


def test_the_rank_loss_with_equal_weights_is_plain_infonce_else_the_formula_whose_weights_fall_with_the_margin():
    margins = doubles([1.0, 0.2, -0.5, 0.7])
    plain = torch.nn.functional.cross_entropy(margins, torch.tensor([0]))
    assert rank_loss(margins, doubles([0.9, 0.3, 0.3, 0.3]), 2.0).item() == pytest.approx(plain.item(), abs=1e-12)
    scores = doubles([0.9, 0.8, 0.1, 0.4])
    weights = 3 * negative_weights(scores, 2.0)[0]
    below = torch.exp(margins[0, 0]) + (weights * torch.exp(margins[0, 1:])).sum()
    assert rank_loss(margins, scores, 2.0).item() == pytest.approx(-torch.log(torch.exp(margins[0, 0]) / below).item())
    # H3: the hardest negative counts most.
    weights = negative_weights(doubles([0.9, 0.85, 0.5, 0.1, 0.0]), 2.0)[0]
    assert weights.sum().item() == pytest.approx(1.0, abs=1e-12)
    assert weights.tolist() == sorted(weights.tolist(), reverse=True) and len(set(weights.tolist())) == 4
    found = point_loss(doubles([0.0, 2.0]), doubles([0.5, 0.1]))
    assert found.tolist() == pytest.approx([(torch.sigmoid(torch.tensor(2.0)).item() - 0.1) ** 2], abs=1e-7)


def candidates(positives: int, negatives: int, query: str = "q") -> list[Example]:
    labels = [1] * positives + [0] * negatives
    return [Example("q", "d", "", one, 0.5, query_id=query, doc_id=f"{query}-{at}") for at, one in enumerate(labels)]


def test_a_group_is_one_positive_and_seven_negatives_drawn_by_the_seed_and_short_ones_are_left_out():
    """H4."""
    rows = candidates(2, 20)
    groups, _summary = group_candidates(rows, 7, 0)
    assert [positive for positive, *_negatives in groups] == [0, 1]
    for _positive, *negatives in groups:
        assert len(set(negatives)) == 7 and all(rows[place].label == 0 for place in negatives)
    assert groups == group_candidates(rows, 7, 0)[0] != group_candidates(rows, 7, 1)[0]
    assert groups[0][1:] != groups[1][1:]
    # H4: a document of another query would have no score of the teacher.
    rows = candidates(1, 7, "a") + candidates(1, 6, "b") + candidates(0, 9, "c")
    _groups, summary = group_candidates(rows, 7, 0)
    assert summary == "1 groups of 1 queries; 2 of 3 queries left out"
    with pytest.raises(BadInput, match="8 others"):
        group_candidates(candidates(1, 7), 8, 0)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("ablation")
    return tiny_base(folder / "base", hidden=32), write_set(folder / "set", queries=10, documents=16)


def make_task(parts: tuple[Path, Path], **options: Any) -> TrainingTask:
    given = {"preset": "tiny", "max_length": 384, "lora_rank": 4, "max_steps": 3, **options}
    found, chosen = data.read_training_set(parts[1]), table.recipe_options("ablation", given)
    return TrainingTask("ablation", parts[0], "tiny", found, chosen, "cpu", True)


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_is_its_parts_and_no_text_is_learned(loss, parts, tmp_path):
    """H5: no row has an answer, no part is called sft, and no logits of the vocabulary are made."""
    recipe = LossAblation(make_task(parts, loss=loss))
    head = recipe.model.get_base_model().get_output_embeddings()
    head.register_forward_hook(lambda *_: pytest.fail("logits of the vocabulary"))
    assert list(recipe.weights) == loss.split("+") and set(recipe.weights.values()) == {1.0}
    assert all(len(row.ids) == row.start and not row.sft for row in recipe.rows[:16])
    assert all(len(group) == 8 for group in recipe.groups)
    found = recipe.forward([0, 1])
    assert set(found) == set(recipe.weights)
    margins, scores = recipe.group_margins([0, 1])
    wanted = {
        "point": ((torch.sigmoid(margins) - scores) ** 2).sum(),
        "list": list_loss(margins, scores, 2.0).sum(),
        "rank": rank_loss(margins, scores, 2.0).sum(),
    }
    for part, value in found.items():
        assert value.item() == pytest.approx(wanted[part].item(), rel=1e-6)
    assert recipe.counts([0, 1]) == {part: 16 if part == "point" else 2 for part in found}


def test_a_smaller_token_budget_gives_the_same_gradient_and_parts_no_group(parts, tmp_path):
    grads, passes = [], []
    for budget in (384, 100_000):
        recipe = LossAblation(make_task(parts, loss="point+list+rank", token_budget=budget))
        (tmp_path / str(budget)).mkdir()
        trainer = recipe.trainer(
            JobCallback(JobFolder(tmp_path / str(budget)), recipe.task, lambda: False, recipe.dev_margins)
        )
        step = trainer.epochs.step(0)
        trainer.gradients(step)
        passes.append(trainer.passes(step))
        grads.append([value.grad.clone() for value in trainer.trained_weights])
    assert [len(one) for one in passes] == [4, 1]
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*grads, strict=True))


@pytest.mark.weekly
@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_learns_the_teachers_order_and_is_published(loss, tmp_path):
    """Two of eight documents are relevant: groups of one and six."""
    rows = export(tmp_path / "data", queries=40, dev=24)
    options = {"loss": loss, "negatives": 4, "epochs": 2, "learning_rate": 0.003}
    folder = ask(tmp_path, "ablation", rows, "tiny:qwen3", **options)
    result = train_model(folder, lambda: False)
    assert result["gain"]["shown"], result["gain"]["words"]
    record = json.loads((tmp_path / "out" / "reranker.json").read_text())
    assert record["options"]["loss"] == loss and record["notes"]["groups"] == 80
    parts = [line["parts"] for line in folder.read_metrics() if "parts" in line]
    assert list(parts[0]) == loss.split("+")
