"""Rows of every recipe become tokens once: mapped from a file, read again where a training goes on."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transformers import PreTrainedTokenizerBase  # noqa: E402

from corpus.errors import BadInput  # noqa: E402
from tests.stages import first_quick  # noqa: E402
from tests.training.recipes.test_bundles import row, write  # noqa: E402
from tests.training.trainers.scored import export_scores  # noqa: E402
from tests.training_sets import ask, write_set  # noqa: E402
from training.recipes.job_folder import JobFolder, TrainingCancelled  # noqa: E402
from training.recipes.table import RECIPES  # noqa: E402
from training.trainers import token_tables  # noqa: E402
from training.trainers.training import open_recipe, prepare_task  # noqa: E402

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
def test_a_training_that_goes_on_tokenises_no_row_again(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    folder = make_job(tmp_path, recipe)
    told: list[str] = []
    call = PreTrainedTokenizerBase.__call__

    def count(self: Any, text: Any, *rest: Any, **named: Any) -> Any:
        told.extend([text] if isinstance(text, str) else text)
        return call(self, text, *rest, **named)

    monkeypatch.setattr(PreTrainedTokenizerBase, "__call__", count)
    with pytest.raises(TrainingCancelled):
        open_recipe(prepare_task(folder, folder.job)).train(folder, lambda: "loss" in str(folder.read_metrics()))
    rows = len((tmp_path / "set" / "train.jsonl").read_text().splitlines())
    first = len(told)
    assert first >= rows
    (kept,) = (folder.path / "tokens").iterdir()
    assert list(kept.glob("*.arrow"))
    told.clear()
    monkeypatch.setattr(token_tables, "_write_table", None)
    again = open_recipe(prepare_task(folder, folder.job))
    again.train(folder, lambda: False)
    assert [line["step"] for line in folder.read_metrics() if "loss" in line] == [1, 2, 3, 4]
    # Words of the prompts are looked up; no row is.
    assert len(told) < min(rows, 12), told[:20]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_refused_where_its_memory_cannot_be_enough(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any weight is loaded."""
    folder = make_job(tmp_path, recipe)
    folder.write_request({**folder.job, "memory_mb": 1.0})
    task = prepare_task(folder, folder.job)
    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", None)
    with pytest.raises(BadInput, match=r"0\.\d+ GiB of memory and 0\.00 GiB"):
        open_recipe(task)


@pytest.mark.parametrize("recipe", [name for name, entry in RECIPES.items() if entry.base == "causal"])
def test_an_encoder_cannot_write_answers(recipe: str, tmp_path: Path) -> None:
    folder = make_job(tmp_path, recipe)
    folder.write_request({**folder.job, "base": "tiny:encoder"})
    with pytest.raises(BadInput, match=r"\(bert\) .* recipe cross"):
        open_recipe(prepare_task(folder, folder.job))


def test_a_table_is_mapped_from_its_file_and_another_key_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_tables, "ROWS_PER_PROCESS", 1)  # In several processes.
    made = token_tables.make_table(3, lambda number: {"ids": [number] * number}, tmp_path / "tokens", "a")
    assert made.cache_files and token_tables.list_lengths(made, "ids") == [0, 1, 2]
    again = token_tables.make_table(3, lambda number: {"ids": []}, tmp_path / "tokens", "a")
    assert again[2] == {"ids": [2, 2]}
    token_tables.make_table(1, lambda number: {"ids": [7]}, tmp_path / "tokens", "b")
    assert [path.name for path in (tmp_path / "tokens").iterdir()] == ["b"]
