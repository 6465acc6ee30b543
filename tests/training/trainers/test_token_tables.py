"""Rows of every recipe become tokens once; what does not fit into memory is refused, or measured in halves."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from transformers import PreTrainedTokenizerBase

from corpus.errors import BadInput
from tests.stages import first_quick
from tests.training.recipes.test_bundles import row, write
from tests.training.trainers.learnable import export_scores
from tests.training_sets import ask, write_set
from training.recipes.data import Example
from training.recipes.job_folder import JobFolder, TrainingCancelled
from training.recipes.table import RECIPES
from training.trainers import token_tables
from training.trainers.training import open_recipe, prepare_task

SMALL: dict[str, dict[str, Any]] = {
    "prism-extend": {"teacher_prompt": "qwen3-reranker"},
    "ablation": {"batch": 2, "negatives": 3},
    "erank-sft": {"lora_rank": 4, "max_response": 4},
    "erank-grpo": {"batch": 6, "mini_batch": 6, "group": 2, "max_response": 4},
    "rtriever": {"batch": 4},
}


def make_job(path: Path, recipe: str) -> JobFolder:
    """A job of a recipe on a set in its own format, without a dev split."""
    entry = RECIPES[recipe]
    if entry.format == "erank-sft":
        rows = export_scores(path / "set", queries=8, dev=0)
    elif entry.format == "rtriever":
        rows = write(path / "set", [row(number) for number in range(24)])
    else:
        rows = write_set(path / "set", queries=6)
        (rows / "dev.jsonl").unlink()
        (rows / "manifest.json").write_text('{"format": "prism", "collection": "learnable"}')
    base = "tiny:encoder" if entry.base == "encoder" else "tiny:qwen3"
    return ask(path, recipe, rows, base, max_steps=4, checkpoint_every=1, **SMALL.get(recipe, {}))


@pytest.mark.parametrize("recipe", first_quick(RECIPES))
def test_a_training_that_goes_on_tokenises_no_row_again(recipe, tmp_path, monkeypatch):
    folder = make_job(tmp_path, recipe)
    texts: list[str] = []
    call = PreTrainedTokenizerBase.__call__

    def count(self: Any, text: Any, *rest: Any, **named: Any) -> Any:
        texts.extend([text] if isinstance(text, str) else text)
        return call(self, text, *rest, **named)

    monkeypatch.setattr(PreTrainedTokenizerBase, "__call__", count)
    with pytest.raises(TrainingCancelled):
        open_recipe(prepare_task(folder, folder.job)).train(folder, lambda: "loss" in str(folder.read_metrics()))
    rows = len((tmp_path / "set" / "train.jsonl").read_text().splitlines())
    assert len(texts) >= rows
    (kept,) = (folder.path / "tokens").iterdir()
    assert list(kept.glob("*.arrow"))
    texts.clear()
    monkeypatch.setattr(token_tables, "_write_table", None)
    open_recipe(prepare_task(folder, folder.job)).train(folder, lambda: False)
    assert [line["step"] for line in folder.read_metrics() if "loss" in line] == [1, 2, 3, 4]
    # Words of the prompts are looked up; no row is.
    assert len(texts) < min(rows, 12), texts[:20]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_refused_where_its_memory_cannot_be_enough(recipe, tmp_path, monkeypatch):
    """Before any weight is loaded."""
    folder = make_job(tmp_path, recipe)
    folder.write_request({**folder.job, "memory_mb": 1.0})
    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", None)
    with pytest.raises(BadInput, match=r"0\.\d+ GiB of memory and 0\.00 GiB"):
        open_recipe(prepare_task(folder, folder.job))


@pytest.mark.parametrize("recipe", [name for name, entry in RECIPES.items() if entry.base == "causal"])
def test_an_encoder_cannot_write_answers(recipe, tmp_path):
    folder = make_job(tmp_path, recipe)
    folder.write_request({**folder.job, "base": "tiny:encoder"})
    with pytest.raises(BadInput, match=r"\(bert\) .* recipe cross"):
        open_recipe(prepare_task(folder, folder.job))


def test_a_table_is_mapped_from_its_file_and_another_key_takes_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(token_tables, "ROWS_PER_PROCESS", 1)  # In several processes.
    made = token_tables.make_table(3, lambda number: {"ids": [number] * number}, tmp_path / "tokens", "a")
    assert made.cache_files and token_tables.list_lengths(made, "ids") == [0, 1, 2]
    again = token_tables.make_table(3, lambda number: {"ids": []}, tmp_path / "tokens", "a")
    assert again[2] == {"ids": [2, 2]}
    token_tables.make_table(1, lambda number: {"ids": [7]}, tmp_path / "tokens", "b")
    assert [path.name for path in (tmp_path / "tokens").iterdir()] == ["b"]


torch.set_num_threads(1)
ROWS = [Example(f"question {n}", "word " * (1 + n), "", n % 2, query_id=f"q{n}", doc_id=f"d{n}") for n in range(7)]


@pytest.mark.parametrize("recipe", first_quick(["prism", "cross-encoder", "erank-sft", "rtriever"]))
def test_memory_that_runs_out_while_measuring_halves_the_batch_and_changes_no_margin(recipe, tmp_path):
    folder = make_job(tmp_path, recipe)
    work: Any = open_recipe(prepare_task(folder, folder.job))
    wanted = work.dev_margins(ROWS)
    encoders = {"cross-encoder": lambda: work.model[0].auto_model, "rtriever": lambda: work.model[0]}
    body = encoders.get(recipe, lambda: work.model.get_base_model().get_decoder())()
    refused = []

    def refuse_many(_module: Any, args: Any, given: dict[str, Any]) -> None:
        rows = len((args[0] if args else given)["input_ids"])
        if rows > 2:
            refused.append(rows)
            raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")

    body.register_forward_pre_hook(refuse_many, with_kwargs=True)
    assert work.dev_margins(ROWS) == pytest.approx(wanted, abs=1e-4)
    assert max(refused) == 7
