"""Recipe `prism` against a plain implementation: losses, label positions, packing, processes (checks 2 and 3)."""

from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transformers import AutoTokenizer, get_cosine_schedule_with_warmup  # noqa: E402

from corpus.bundled.passages import cut_passages  # noqa: E402
from corpus.errors import BadInput  # noqa: E402
from tests.stages import first_quick  # noqa: E402
from tests.training_sets import write_set  # noqa: E402
from training.published.base import load_tokenizer  # noqa: E402
from training.published.batching import Epochs, pack_batches  # noqa: E402
from training.published.tiny_bases import tiny_base, tiny_encoder  # noqa: E402
from training.recipes import data, rendering, table  # noqa: E402
from training.recipes.job_folder import JobFolder  # noqa: E402
from training.trainers.callback import JobCallback  # noqa: E402
from training.trainers.memory import DoesNotFit  # noqa: E402
from training.trainers.prism import PrismRecipe, label_states  # noqa: E402
from training.trainers.recipe import TrainingTask  # noqa: E402

SHAPES = ("qwen3", "qwen3.5")


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bases")
    return {shape: tiny_base(folder / shape, shape=shape, hidden=32) for shape in SHAPES}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> data.TrainingSet:
    return data.read_training_set(write_set(tmp_path_factory.mktemp("sets") / "prism"))


def make_task(base: Path, found: data.TrainingSet, **options: Any) -> TrainingTask:
    given = {"preset": "tiny", "max_length": 384, "max_steps": 20, "lora_rank": 4, "lora_alpha": 8, **options}
    return TrainingTask("prism", base, "tiny", found, table.recipe_options("prism", given), "cpu", True)


def begin(recipe: PrismRecipe, folder: Path) -> Any:
    """The recipe's trainer on a job's folder."""
    folder.mkdir(exist_ok=True)
    return recipe.trainer(JobCallback(JobFolder(folder), recipe.task, lambda: False, recipe.dev_margins))


class Plain:
    """One row at a time, all logits, plain torch: what the recipe is held to."""

    def __init__(self, recipe: PrismRecipe, task: TrainingTask) -> None:
        self.recipe, self.task = recipe, task
        self.tokenizer = load_tokenizer(task.base)

    def loss(self, numbers: list[int]) -> Any:
        """The mean over the step's rows of 20 (sigmoid(margin) - teacher)^2 + cross-entropy of the target."""
        total = 0.0
        for number in numbers:
            one = self.task.data.train[number]
            prompt = self.tokenizer(rendering.QUORUM.render(one.query, one.document), add_special_tokens=False)[
                "input_ids"
            ]
            word = "yes" if one.label else "no"
            answer = f"{word}\n{one.target}".strip() + "<|im_end|>"
            target = self.tokenizer(answer, add_special_tokens=False)["input_ids"]
            ids = torch.tensor([[*prompt, *target]])
            logits = self.recipe.model(input_ids=ids, use_cache=False).logits[0].float()
            before = logits[len(prompt) - 1]
            yes, no = (self.tokenizer(one, add_special_tokens=False)["input_ids"][0] for one in ("yes", "no"))
            point = (torch.sigmoid(before[yes] - before[no]) - one.teacher) ** 2
            logs = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
            entropy = -torch.stack([logs[place, token] for place, token in enumerate(target)])
            text = entropy.sum() if self.task.options.sft_reduction == "sum" else entropy.mean()
            total = total + 20.0 * point + text
        return total / len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["sum", pytest.param("mean", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", first_quick(SHAPES))
def test_twenty_steps_have_the_losses_of_a_plain_implementation(
    shape: str, reduction: str, bases: dict[str, Path], rows: data.TrainingSet, tmp_path: Path
) -> None:
    task = make_task(bases[shape], rows, sft_reduction=reduction, token_budget=500, batch=3)
    trainer = begin(PrismRecipe(task), tmp_path)
    trainer.callback.train(trainer)
    ours = [line["loss"] for line in JobFolder(tmp_path).read_metrics() if "loss" in line]
    plain = PrismRecipe(task)
    reference = Plain(plain, task)
    trained = [value for value in plain.model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=task.options.learning_rate, weight_decay=task.options.weight_decay)
    schedule = get_cosine_schedule_with_warmup(optimizer, 2, 20)
    for step in range(20):
        loss = reference.loss(trainer.epochs.step(step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        assert ours[step] == pytest.approx(float(loss.detach()), rel=1e-5, abs=1e-5), f"step {step}"


@pytest.mark.parametrize("shape", first_quick(SHAPES))
def test_label_position_states_are_those_of_all_positions(
    shape: str, bases: dict[str, Path], rows: data.TrainingSet
) -> None:
    recipe = PrismRecipe(make_task(bases[shape], rows))
    chosen = recipe.rows[:5]
    head = recipe.model.get_base_model().get_output_embeddings()
    with torch.no_grad():
        ours = head(label_states(recipe.model, chosen, 0))
        full = [recipe.model(input_ids=torch.tensor([row.ids]), use_cache=False).logits[0] for row in chosen]
    wanted = torch.cat(
        [one[row.label_positions.start : row.label_positions.stop] for one, row in zip(full, chosen, strict=True)]
    )
    assert ours.shape == wanted.shape
    assert torch.allclose(ours, wanted, atol=1e-5)


def test_no_more_logits_than_a_tile_are_ever_there(
    bases: dict[str, Path], rows: data.TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = PrismRecipe(make_task(bases["qwen3"], rows))
    head, shapes = recipe.model.get_base_model().get_output_embeddings(), []
    head.register_forward_hook(lambda _module, _inputs, output: shapes.append(tuple(output.shape)))
    whole = recipe.forward(range(5))["sft"]
    monkeypatch.setattr("training.trainers.prism.TILE", 16)
    shapes.clear()
    tiled = recipe.forward(range(5))["sft"]
    tiled.backward()
    assert len(shapes) > 4 and all(shape[0] <= 16 for shape in shapes)
    assert tiled.item() == pytest.approx(whole.item(), rel=1e-6)


def test_packed_rows_do_not_see_each_other(bases: dict[str, Path], rows: data.TrainingSet) -> None:
    recipe = PrismRecipe(make_task(bases["qwen3"], rows, packing=True))
    chosen = recipe.rows[:6]
    with torch.no_grad():
        packed, padded = (label_states(recipe.model, chosen, 0, packed=flag) for flag in (True, False))
    assert torch.allclose(packed, padded, atol=1e-5)


def test_packing_is_refused_where_it_leaks(bases: dict[str, Path], rows: data.TrainingSet) -> None:
    with pytest.raises(BadInput, match=r"Packing .* qwen3_5_text"):
        PrismRecipe(make_task(bases["qwen3.5"], rows, packing=True))


def test_a_smaller_token_budget_gives_the_same_gradient(
    bases: dict[str, Path], rows: data.TrainingSet, tmp_path: Path
) -> None:
    found = []
    for budget in (384, 4096):
        trainer = begin(PrismRecipe(make_task(bases["qwen3"], rows, token_budget=budget)), tmp_path / str(budget))
        trainer.gradients(trainer.epochs.step(0))
        found.append([value.grad.clone() for value in trainer.trained_weights])
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*found, strict=True))


@pytest.mark.slow
def test_memory_that_runs_out_halves_the_budget_and_the_step_is_done_all_the_same(
    bases: dict[str, Path], rows: data.TrainingSet, tmp_path: Path
) -> None:
    """The error is torch's own, raised by the test where a pass is larger than it allows."""
    task = make_task(bases["qwen3"], rows, token_budget=4096)
    recipe = PrismRecipe(task)
    forward = recipe.forward

    def small(numbers: Any) -> Any:
        if len(numbers) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")
        return forward(numbers)

    recipe.forward = small  # type: ignore[method-assign]
    trainer, wanted = begin(recipe, tmp_path / "a"), begin(PrismRecipe(task), tmp_path / "b")
    first = trainer.epochs.step(0)
    assert trainer.gradients(first) == pytest.approx(wanted.gradients(first), rel=1e-5)
    assert trainer.callback.progress.token_budget < 4096
    assert "out of memory" in trainer.callback.folder.state["phase"]

    recipe.forward = lambda numbers: small([0, 0, 0])  # type: ignore[method-assign]
    with pytest.raises(DoesNotFit, match="lower max_length"):
        trainer.gradients(first)


def test_every_row_comes_once_in_an_epoch_and_in_another_order_in_the_next() -> None:
    epochs = Epochs(list(range(1, 102)), 8, 5)
    for epoch in (0, 1):
        assert sorted(row for step in epochs.order(epoch) for row in step) == list(range(101))
    assert epochs.order(0) != epochs.order(1) and epochs.step(13) == epochs.order(1)[0]


def test_passes_stay_within_the_budget_and_hold_every_row() -> None:
    lengths = [5, 100, 40, 60, 7, 300]
    for padded in (True, False):
        passes = pack_batches(lengths, 128, padded=padded)
        assert sorted(place for one in passes for place in one) == list(range(6))
        for one in passes:
            cost = max(lengths[place] for place in one) * len(one) if padded else sum(lengths[place] for place in one)
            assert cost <= 128 or len(one) == 1
    assert pack_batches(lengths, 10_000) == [[5, 1, 3, 2, 4, 0]]


def test_a_teacher_score_must_not_be_missing(tmp_path: Path, bases: dict[str, Path]) -> None:
    found = data.read_training_set(write_set(tmp_path / "set", revised_score=None))
    with pytest.raises(BadInput, match=r"96 of 96 .* teacher score"):
        PrismRecipe(make_task(bases["qwen3"], found))


def test_the_document_is_cut_and_never_the_end_of_the_prompt(bases: dict[str, Path], tmp_path: Path) -> None:
    found = data.read_training_set(write_set(tmp_path / "set", document="a long text about keys " * 300))
    recipe = PrismRecipe(make_task(bases["qwen3"], found, max_length=320, token_budget=320))
    tail = recipe.tokenizer(rendering.TAIL, add_special_tokens=False)["input_ids"]
    for row in recipe.rows[:4]:
        assert row.start == 320 - recipe.answer_room and row.ids[row.start - len(tail) : row.start] == tail
    with pytest.raises(BadInput, match="max_length 60 "):
        PrismRecipe(make_task(bases["qwen3"], found, max_length=60, token_budget=60))


def test_the_place_where_a_document_is_cut_does_not_tell_its_label(bases: dict[str, Path], tmp_path: Path) -> None:
    """Cut by the row's own answer, a "no" of two tokens and a score alone would end two tokens apart."""
    found = data.read_training_set(write_set(tmp_path / "set", document="a long text about keys " * 300))
    recipe = PrismRecipe(make_task(bases["qwen3"], found, max_length=320, token_budget=320))
    rows = list(recipe.rows[: len(recipe.rows)])
    assert len({len(row.ids) - row.start for row in rows}) > 1, "answers differ in length"
    assert len({row.start for row in rows}) == 1 and max(len(row.ids) for row in rows) == 320
    steps = Epochs(recipe.lengths(), 8, 0, recipe.order_by).order(0)
    assert all(len({rows[row].teacher for row in step}) > 1 for step in steps), "no step has rows of one label alone"


def test_rows_that_are_cut_are_counted_and_many_give_a_warning_with_the_length_that_fits(
    bases: dict[str, Path], rows: data.TrainingSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = PrismRecipe(make_task(bases["qwen3"], rows, max_length=320, token_budget=320))
    whole = PrismRecipe(make_task(bases["qwen3"], rows, max_length=2000))
    longer = sum(row.start > cut.start for row, cut in zip(whole.rows, recipe.rows, strict=True))
    callback = JobCallback(JobFolder(tmp_path), recipe.task, lambda: False, recipe.dev_margins)
    found = callback.report_lengths(recipe.rows.table["whole"], 320)
    assert 0 < longer == found["cut"] and sum(found["counts"]) == found["rows"] == 96
    assert f"warning: {longer} of 96 rows" in capsys.readouterr().out
    again = PrismRecipe(make_task(bases["qwen3"], rows, max_length=found["fits_95"], token_budget=2000))
    few = callback.report_lengths(again.rows.table["whole"], found["fits_95"])
    assert few["cut"] <= 0.05 * 96 and "warning" not in capsys.readouterr().out
    assert JobFolder(tmp_path).state["row_lengths"] == few


def test_tiny_trainings_cut_at_most_a_twentieth_of_the_bundled_collection(tmp_path: Path) -> None:
    """What `make demo` trains on; an answer takes its room, too."""
    tokenizer = load_tokenizer(tiny_base(tmp_path / "base"))
    encoder = AutoTokenizer.from_pretrained(tiny_encoder(tmp_path / "encoder"))
    texts = [f"{one.title}\n{one.text}" for one in cut_passages(topics)]
    query, answer = "how do I define a function with default arguments?", 60
    causal = [len(ids) + answer for ids in tokenizer([rendering.QUORUM.render(query, t) for t in texts])["input_ids"]]
    pairs = [len(ids) for ids in encoder([query] * len(texts), texts, verbose=False)["input_ids"]]
    for recipe, lengths in (("prism", causal), ("cross-encoder", pairs)):
        limit = table.recipe_options(recipe, {"preset": "tiny"}).max_length
        assert sum(length > limit for length in lengths) <= 0.05 * len(texts)
