"""What can be trained: bases in the hub's composite layout, decoders without their last layer; what memory it takes."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transformers import AutoConfig, AutoTokenizer, Qwen3Config, Qwen3ForCausalLM, T5Config  # noqa: E402

from corpus.errors import BadInput  # noqa: E402
from tests.tiny_models import with_vision  # noqa: E402
from tests.training.recipes.test_bundles import row, write  # noqa: E402
from tests.training.trainers.scored import export_scores  # noqa: E402
from tests.training_sets import ask, write_set  # noqa: E402
from training.published.base import check_causal, load_model  # noqa: E402
from training.published.tiny_bases import tiny_base  # noqa: E402
from training.recipes import data, table  # noqa: E402
from training.trainers.memory import check_memory, count_weights, finishing_memory, needed_memory  # noqa: E402
from training.trainers.prism import PrismRecipe, lora_targets  # noqa: E402
from training.trainers.recipe import TrainingTask  # noqa: E402
from training.trainers.training import open_recipe, prepare_task  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("set") / "prism", queries=5)


def make_task(base: Path, rows: Path, recipe: str = "prism", memory_mb: float | None = None, **options: Any) -> Any:
    chosen = table.recipe_options(recipe, {"preset": "tiny", **options})
    return TrainingTask(recipe, base, "base", data.read_training_set(rows), chosen, "cpu", True, memory_mb)


def test_the_memory_of_a_base_that_reads_pictures_too_is_that_of_its_text_model(rows: Path, tmp_path: Path) -> None:
    base, _, _ = with_vision(tmp_path / "base")
    assert hasattr(AutoConfig.from_pretrained(base), "vision_config")
    recipe = PrismRecipe(make_task(base, rows, lora_rank=4))
    assert count_weights(base) == sum(v.numel() for n, v in recipe.model.named_parameters() if "lora_" not in n)


def test_a_decoder_is_never_called_an_encoder(tmp_path: Path) -> None:
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
def test_adapters_go_into_all_linear_layers_and_what_has_none_is_named(shape: str, rows: Path, tmp_path: Path) -> None:
    recipe = PrismRecipe(make_task(tiny_base(tmp_path / "base", shape=shape, hidden=32), rows, lora_rank=4))
    adapted = {
        name.split(".lora_A")[0].rpartition(".")[2] for name, _ in recipe.model.named_parameters() if "lora_A" in name
    }
    linear = {"in_proj_qkv", "in_proj_a", "in_proj_b", "in_proj_z", "out_proj"} if shape == "qwen3.5" else set()
    assert adapted == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"} | linear
    named = recipe.without_adapter
    assert "model.embed_tokens" in named and ("model.layers.linear_attn.conv1d" in named) == (shape == "qwen3.5")


def test_layers_can_be_named_and_one_that_is_not_there_is_refused(rows: Path, tmp_path: Path) -> None:
    recipe = PrismRecipe(make_task(tiny_base(tmp_path / "base", hidden=32), rows, lora_targets="q_proj, v_proj"))
    assert all(".q_proj." in n or ".v_proj." in n for n, p in recipe.model.named_parameters() if p.requires_grad)
    with pytest.raises(BadInput, match=r"'query'; .* down_proj, gate_proj"):
        lora_targets(load_model(tmp_path / "base", "cpu", torch.float32), "query")


def test_memory_is_counted_in_the_format_that_is_loaded_and_finishing_in_fp32(rows: Path, tmp_path: Path) -> None:
    base = tiny_base(tmp_path / "base", hidden=32)
    AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / "half")
    model = Qwen3ForCausalLM.from_pretrained(base)
    model.to(torch.bfloat16).save_pretrained(tmp_path / "half")
    weights = sum(value.numel() for value in model.parameters())
    config = AutoConfig.from_pretrained(base)
    needs = [
        needed_memory(make_task(folder, rows, precision=precision, lora_rank=4), config, 100)
        for folder, precision in ((base, "fp32"), (tmp_path / "half", "fp32"), (base, "bf16"))
    ]
    # A file in half precision takes as much as one in fp32 once it is loaded in fp32.
    assert count_weights(tmp_path / "half") == weights and needs[0] == needs[1] > needs[2]
    task = make_task(tmp_path / "half", rows, precision="bf16", lora_rank=1)
    assert finishing_memory(task) == weights * 4
    small = make_task(tmp_path / "half", rows, precision="bf16", lora_rank=1, memory_mb=weights * 3.5 / 2**20)
    assert needed_memory(small, config, 1) < weights * 3.5
    with pytest.raises(BadInput, match="publishing needs"):
        check_memory(small, config, 1)


@pytest.mark.parametrize("name", ["erank-sft", "rtriever"])
def test_other_recipes_put_adapters_into_the_layers_that_are_named(name: str, tmp_path: Path) -> None:
    data = write(tmp_path / "set", [row(1), row(2)]) if name == "rtriever" else export_scores(tmp_path / "set", dev=0)

    def adapted(layers: str) -> set[str]:
        job = ask(tmp_path / layers, name, data, "tiny:qwen3", lora_rank=4, lora_targets=layers)
        model: Any = open_recipe(prepare_task(job, job.job)).model
        parts = (part for part, value in model.named_parameters() if "lora_" in part)
        return {part.partition(".lora_")[0].rpartition(".")[2] for part in parts}

    assert adapted("q_proj,v_proj") == {"q_proj", "v_proj"}
    with pytest.raises(BadInput, match=r"lora_targets: .* 'sideways'"):
        adapted("sideways")
