"""Measuring on the dev split where memory runs out, which the test says: in halves, with the same margins."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.stages import first_quick  # noqa: E402
from tests.training.trainers.test_token_tables import make_job  # noqa: E402
from training.recipes.data import Example  # noqa: E402
from training.trainers.training import open_recipe, prepare_task  # noqa: E402

ROWS = [Example(f"question {n}", "word " * (1 + n), "", n % 2, query_id=f"q{n}", doc_id=f"d{n}") for n in range(7)]


@pytest.mark.parametrize("recipe", first_quick(["prism", "cross-encoder", "erank-sft", "rtriever"]))
def test_memory_that_runs_out_while_measuring_halves_the_batch_and_changes_no_margin(
    recipe: str, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
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
