"""docs/train.md, "The smallest GPU": the table is what memory.needed_memory says of Qwen3's shapes."""

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transformers import Qwen3Config, Qwen3ForCausalLM  # noqa: E402

from config.env import ROOT  # noqa: E402
from training.recipes.data import TrainingSet  # noqa: E402
from training.recipes.table import RECIPES, recipe_options  # noqa: E402
from training.trainers import memory  # noqa: E402
from training.trainers.prism import TILE  # noqa: E402
from training.trainers.recipe import TrainingTask  # noqa: E402
from training.trainers.rtriever import FP32  # noqa: E402

# Hidden size, layers, width of the MLP, heads; the last layer of the largest is no copy of its embeddings.
SHAPES = {"0.6B": (1024, 28, 3072, 16), "4B": (2560, 36, 9728, 32), "8B": (4096, 36, 12_288, 32)}
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


def shape_of(size: str) -> Any:
    hidden, layers, wide, heads = SHAPES[size]
    return Qwen3Config(
        vocab_size=151_936, hidden_size=hidden, num_hidden_layers=layers, intermediate_size=wide, head_dim=128,
        num_attention_heads=heads, num_key_value_heads=8, tie_word_embeddings=size != "8B",
    )  # fmt: skip


def say_need(recipe: str, size: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the table says of a recipe and a size of its base."""
    config = shape_of(size)
    with torch.device("meta"):
        weights = sum(value.numel() for value in Qwen3ForCausalLM(config).parameters())
    monkeypatch.setattr(memory, "count_weights", lambda folder: weights)
    nothing = TrainingSet([], [], "votes", "none", "0" * 64)
    task = TrainingTask(
        recipe, Path("base"), "base", nothing, recipe_options(recipe, {"preset": "paper"}), "cuda", False
    )
    longest, told = PASSES[recipe]
    need = memory.needed_memory(task, config, longest, **told) / 2**30
    return f"{need:.1f} GiB: {next(gb for gb in SOLD if need < 0.97 * gb)} GB"


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_smallest_gpu_of_each_recipe_is_in_the_documentation(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "train.md").read_text().partition("The smallest GPU")[2]
    row = re.search(rf"^\| `{recipe}` \(.*?\) \| (.+) \|$", text, re.MULTILINE)
    assert row is not None
    assert row[1].split(" | ") == [say_need(recipe, size, monkeypatch) for size in SHAPES]
