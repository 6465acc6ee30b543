"""Recipe `prism` against a plain implementation; what can be trained, in which layers, and what memory it takes."""

import re
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from transformers import (
    AutoConfig,
    AutoTokenizer,
    Qwen3Config,
    Qwen3ForCausalLM,
    T5Config,
    get_cosine_schedule_with_warmup,
)

from config.env import ROOT
from corpus.bundled.passages import cut_passages
from corpus.errors import BadInput
from tests.stages import first_quick
from tests.tiny_models import with_vision
from tests.training.recipes.test_bundles import row, write
from tests.training.trainers.learnable import export_scores
from tests.training_sets import ask, write_set
from training.published.base import check_causal, load_model, load_tokenizer
from training.published.batching import Epochs, pack_batches
from training.published.tiny_bases import tiny_base, tiny_encoder
from training.recipes import data, rendering, table
from training.recipes.job_folder import JobFolder
from training.trainers import memory
from training.trainers.callback import JobCallback
from training.trainers.memory import DoesNotFit, check_memory, count_weights, finishing_memory, needed_memory
from training.trainers.prism import TILE, PrismRecipe, label_states, lora_targets
from training.trainers.recipe import TrainingTask
from training.trainers.rtriever import FP32
from training.trainers.training import open_recipe, prepare_task

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

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def loss(self, numbers: list[int]) -> Any:
        """The mean over the step's rows of 20 (sigmoid(margin) - teacher)^2 + cross-entropy of the target."""
        total = 0.0
        for number in numbers:
            one = self.task.data.train[number]
            answer = f"{'yes' if one.label else 'no'}\n{one.target}".strip() + "<|im_end|>"
            prompt, target = map(self.encode, (rendering.QUORUM.render(one.query, one.document), answer))
            ids = torch.tensor([[*prompt, *target]])
            logits = self.recipe.model(input_ids=ids, use_cache=False).logits[0].float()
            before = logits[len(prompt) - 1]
            yes, no = (self.encode(word)[0] for word in ("yes", "no"))
            point = (torch.sigmoid(before[yes] - before[no]) - one.teacher) ** 2
            logs = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
            entropy = -torch.stack([logs[place, token] for place, token in enumerate(target)])
            text = entropy.sum() if self.task.options.sft_reduction == "sum" else entropy.mean()
            total = total + 20.0 * point + text
        return total / len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("shape", first_quick(SHAPES))
def test_twenty_steps_have_the_losses_of_a_plain_implementation(shape, reduction, bases, rows, tmp_path):
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
def test_label_position_states_are_those_of_all_positions(shape, bases, rows):
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


def test_no_more_logits_than_a_tile_are_ever_there(bases, rows, monkeypatch):
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


def test_packed_rows_do_not_see_each_other_and_packing_is_refused_where_it_leaks(bases, rows):
    recipe = PrismRecipe(make_task(bases["qwen3"], rows, packing=True))
    with torch.no_grad():
        packed, padded = (label_states(recipe.model, recipe.rows[:6], 0, packed=flag) for flag in (True, False))
    assert torch.allclose(packed, padded, atol=1e-5)
    with pytest.raises(BadInput, match=r"Packing .* qwen3_5_text"):
        PrismRecipe(make_task(bases["qwen3.5"], rows, packing=True))


def test_a_smaller_token_budget_gives_the_same_gradient(bases, rows, tmp_path):
    found = []
    for budget in (384, 4096):
        trainer = begin(PrismRecipe(make_task(bases["qwen3"], rows, token_budget=budget)), tmp_path / str(budget))
        trainer.gradients(trainer.epochs.step(0))
        found.append([value.grad.clone() for value in trainer.trained_weights])
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*found, strict=True))


@pytest.mark.slow
def test_memory_that_runs_out_halves_the_budget_and_the_step_is_done_all_the_same(bases, rows, tmp_path):
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


def test_every_row_comes_once_in_an_epoch_in_passes_within_the_budget():
    epochs = Epochs(list(range(1, 102)), 8, 5)
    for epoch in (0, 1):
        assert sorted(row for step in epochs.order(epoch) for row in step) == list(range(101))
    assert epochs.order(0) != epochs.order(1) and epochs.step(13) == epochs.order(1)[0]
    lengths = [5, 100, 40, 60, 7, 300]
    for padded in (True, False):
        passes = pack_batches(lengths, 128, padded=padded)
        assert sorted(place for one in passes for place in one) == list(range(6))
        for one in passes:
            cost = max(lengths[place] for place in one) * len(one) if padded else sum(lengths[place] for place in one)
            assert cost <= 128 or len(one) == 1
    assert pack_batches(lengths, 10_000) == [[5, 1, 3, 2, 4, 0]]


def test_a_teacher_score_must_not_be_missing(tmp_path, bases):
    found = data.read_training_set(write_set(tmp_path / "set", revised_score=None))
    with pytest.raises(BadInput, match=r"96 of 96 .* teacher score"):
        PrismRecipe(make_task(bases["qwen3"], found))


def test_a_document_is_cut_never_the_end_of_the_prompt_and_where_does_not_tell_its_label(bases, tmp_path):
    """Cut by the row's own answer, a "no" of two tokens and a score alone would end two tokens apart."""
    found = data.read_training_set(write_set(tmp_path / "set", document="a long text about keys " * 300))
    recipe = PrismRecipe(make_task(bases["qwen3"], found, max_length=320, token_budget=320))
    tail = recipe.tokenizer(rendering.TAIL, add_special_tokens=False)["input_ids"]
    rows = list(recipe.rows[: len(recipe.rows)])
    for cut in rows[:4]:
        assert cut.start == 320 - recipe.answer_room and cut.ids[cut.start - len(tail) : cut.start] == tail
    with pytest.raises(BadInput, match="max_length 60 "):
        PrismRecipe(make_task(bases["qwen3"], found, max_length=60, token_budget=60))
    assert len({len(cut.ids) - cut.start for cut in rows}) > 1, "answers differ in length"
    assert len({cut.start for cut in rows}) == 1 and max(len(cut.ids) for cut in rows) == 320
    steps = Epochs(recipe.lengths(), 8, 0, recipe.order_by).order(0)
    assert all(len({rows[number].teacher for number in step}) > 1 for step in steps), (
        "no step has rows of one label alone"
    )


def test_rows_that_are_cut_are_counted_and_many_give_a_warning_with_the_length_that_fits(bases, rows, tmp_path, capsys):
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


def test_tiny_trainings_cut_at_most_a_twentieth_of_the_bundled_collection(tmp_path):
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


torch.set_num_threads(1)


def adapted_layers(model: Any) -> set[str]:
    parts = (part for part, _value in model.named_parameters() if "lora_" in part)
    return {part.partition(".lora_")[0].rpartition(".")[2] for part in parts}


def test_the_memory_of_a_base_that_reads_pictures_too_is_that_of_its_text_model(rows, tmp_path):
    base, _, _ = with_vision(tmp_path / "base")
    assert hasattr(AutoConfig.from_pretrained(base), "vision_config")
    recipe = PrismRecipe(make_task(base, rows))
    assert count_weights(base) == sum(v.numel() for n, v in recipe.model.named_parameters() if "lora_" not in n)


def test_a_decoder_is_never_called_an_encoder(tmp_path):
    small = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "head_dim": 8}
    config = Qwen3Config(**small, num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False)
    Qwen3ForCausalLM(config).model.save_pretrained(tmp_path / "bare")
    with pytest.raises(BadInput, match=r"\(Qwen3Model\) .*decoder"):
        check_causal(tmp_path / "bare")
    Qwen3ForCausalLM(Qwen3Config(**{**config.to_dict(), "tie_word_embeddings": True})).model.save_pretrained(
        tmp_path / "tied"
    )
    assert check_causal(tmp_path / "tied").model_type == "qwen3"  # Its last layer is its embeddings.
    T5Config(vocab_size=50, d_model=16).save_pretrained(tmp_path / "both")
    with pytest.raises(BadInput, match=r"\(t5\) .* decoder"):
        check_causal(tmp_path / "both")


@pytest.mark.parametrize("shape", ["qwen3", "qwen3.5"])
def test_adapters_go_into_all_linear_layers_and_what_has_none_is_named(shape, rows, tmp_path):
    recipe = PrismRecipe(make_task(tiny_base(tmp_path / "base", shape=shape, hidden=32), rows))
    adapted = adapted_layers(recipe.model)
    linear = {"in_proj_qkv", "in_proj_a", "in_proj_b", "in_proj_z", "out_proj"} if shape == "qwen3.5" else set()
    assert adapted == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"} | linear
    named = recipe.without_adapter
    assert "model.embed_tokens" in named and ("model.layers.linear_attn.conv1d" in named) == (shape == "qwen3.5")


def test_layers_can_be_named_and_one_that_is_not_there_is_refused(rows, tmp_path):
    recipe = PrismRecipe(make_task(tiny_base(tmp_path / "base", hidden=32), rows, lora_targets="q_proj, v_proj"))
    assert adapted_layers(recipe.model) == {"q_proj", "v_proj"}
    with pytest.raises(BadInput, match=r"'query'; .* down_proj, gate_proj"):
        lora_targets(load_model(tmp_path / "base", "cpu", torch.float32), "query")


def test_memory_is_counted_in_the_format_that_is_loaded_and_finishing_in_fp32(rows, tmp_path):
    base = tiny_base(tmp_path / "base", hidden=32)
    AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / "half")
    model = Qwen3ForCausalLM.from_pretrained(base)
    model.to(torch.bfloat16).save_pretrained(tmp_path / "half")
    weights = sum(value.numel() for value in model.parameters())
    config = AutoConfig.from_pretrained(base)
    needs = [
        needed_memory(make_task(folder, rows, precision=precision), config, 100)
        for folder, precision in ((base, "fp32"), (tmp_path / "half", "fp32"), (base, "bf16"))
    ]
    # A file in half precision takes as much as one in fp32 once it is loaded in fp32.
    assert count_weights(tmp_path / "half") == weights and needs[0] == needs[1] > needs[2]
    task = make_task(tmp_path / "half", rows, precision="bf16", lora_rank=1)
    assert finishing_memory(task) == weights * 4
    small = replace(task, memory_mb=weights * 3.5 / 2**20)
    assert needed_memory(small, config, 1) < weights * 3.5
    with pytest.raises(BadInput, match="publishing needs"):
        check_memory(small, config, 1)


@pytest.mark.parametrize("name", ["erank-sft", "rtriever"])
def test_other_recipes_put_adapters_into_the_layers_that_are_named(name, tmp_path):
    rows = write(tmp_path / "set", [row(1), row(2)]) if name == "rtriever" else export_scores(tmp_path / "set", dev=0)

    def opened(layers: str) -> Any:
        job = ask(tmp_path / layers, name, rows, "tiny:qwen3", lora_rank=4, lora_targets=layers)
        return open_recipe(prepare_task(job, job.job)).model

    assert adapted_layers(opened("q_proj,v_proj")) == {"q_proj", "v_proj"}
    with pytest.raises(BadInput, match=r"lora_targets: .* 'sideways'"):
        opened("sideways")


# Hidden size, layers, width of the MLP, heads; the last layer of the largest is no copy of its embeddings.
SIZES = {"0.6B": (1024, 28, 3072, 16), "4B": (2560, 36, 9728, 32), "8B": (4096, 36, 12_288, 32)}
# Recipe -> tokens of the longest pass, and what needed_memory is told besides.
PASSES: dict[str, tuple[int, dict[str, Any]]] = {
    "prism": (10_240, {"answer": TILE}),
    "prism-extend": (10_240, {"answer": TILE}),
    "ablation": (8 * 2048, {}),
    "cross-encoder": (512, {}),
    "erank-sft": (2048, {}),
    "erank-grpo": (2048, {"copies": 1}),
    "rtriever": (2048, {"frozen": FP32}),
}
SOLD = (8, 12, 16, 24, 32, 48, 80, 141, 192)  # GB of GPUs, of which the driver takes some.


def say_need(recipe: str, size: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the table says of a recipe and a size of its base."""
    hidden, layers, wide, heads = SIZES[size]
    config = Qwen3Config(
        vocab_size=151_936, hidden_size=hidden, num_hidden_layers=layers, intermediate_size=wide, head_dim=128,
        num_attention_heads=heads, num_key_value_heads=8, tie_word_embeddings=size != "8B",
    )  # fmt: skip
    with torch.device("meta"):
        weights = sum(value.numel() for value in Qwen3ForCausalLM(config).parameters())
    monkeypatch.setattr(memory, "count_weights", lambda folder: weights)
    nothing = data.TrainingSet([], [], "votes", "none", "0" * 64)
    options = table.recipe_options(recipe, {"preset": "paper"})
    longest, more = PASSES[recipe]
    task = TrainingTask(recipe, Path("base"), "base", nothing, options, "cuda", False)
    need = memory.needed_memory(task, config, longest, **more) / 2**30
    return f"{need:.1f} GiB: {next(gb for gb in SOLD if need < 0.97 * gb)} GB"


@pytest.mark.parametrize("recipe", table.RECIPES)
def test_the_smallest_gpu_of_each_recipe_is_in_the_documentation(recipe, monkeypatch):
    text = (ROOT / "docs" / "train.md").read_text().partition("The smallest GPU")[2]
    row = re.search(rf"^\| `{recipe}` \(.*?\) \| (.+) \|$", text, re.MULTILINE)
    assert row is not None
    assert row[1].split(" | ") == [say_need(recipe, size, monkeypatch) for size in SIZES]
