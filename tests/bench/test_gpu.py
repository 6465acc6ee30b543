"""The parts of `make bench-gpu` at tiny shapes on the CPU (tiny models), and its plan where there is no GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.stages import first_slow  # noqa: E402
from tools.bench import gpu, gpu_parts  # noqa: E402
from training.recipes import table  # noqa: E402
from training.trainers.training import open_recipe  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_what_it_would_do_and_ends_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.bench.gpu"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.startswith("no GPU that torch sees")
    assert all(f"  {name}: " in done.stdout for name in gpu.PARTS)
    assert all(f"{recipe} (" in done.stdout for recipe in table.RECIPES if recipe != "prism")
    assert all(f"ablation ({loss})" in done.stdout for loss in table.LOSSES["ablation"])


def test_a_part_that_is_unknown_is_one_line() -> None:
    assert gpu.main(["teleport"]) == 2


def test_its_parts_are_done_within_nine_minutes_each_in_its_time() -> None:
    assert gpu.WHOLE_S <= 540
    assert all(0 < seconds <= 120 for _, seconds, _ in gpu.PARTS.values())


def test_operations_of_a_token_by_hand() -> None:
    shape = {"hidden": 2, "layers": 1, "intermediate": 3, "heads": 1, "head": 2, "kv": 1}
    frozen = 4 * (2 * 2) + 3 * (2 * 3)
    adapter = 16 * (4 * (2 + 2) + 3 * (2 + 3))
    assert gpu_parts.operations_per_token(shape, [4, 4]) == 4 * frozen + 6 * adapter + 6 * 4 * 2


@pytest.mark.parametrize(("recipe", "loss"), first_slow(gpu_parts.other_recipes(), 2))
def test_what_a_gpu_is_asked_for_fits_each_recipe_its_base_and_its_set(
    recipe: str, loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options of a GPU, opened on the CPU: nothing is refused."""
    asked = gpu_parts.own_options(recipe, "cuda")
    monkeypatch.setattr(gpu_parts, "own_options", lambda *given: asked)
    task = gpu_parts.make_task(recipe, gpu.TINY, tmp_path, {"max_steps": 3, "loss": loss})
    assert task.options.preset == "paper" and open_recipe(task)


@pytest.mark.weekly
@pytest.mark.parametrize("part", sorted(gpu.PARTS))
def test_each_part_runs_at_tiny_shapes_on_the_cpu(part: str, tmp_path: Path) -> None:
    figures = gpu.run_part(part, gpu.TINY, tmp_path, 500)
    assert figures and [one for one in figures if one.get("error")] == []
    assert all(isinstance(one["value"], int | float) for one in figures)
    if part == "recipes":
        cases = {f"{recipe}, loss {loss}" for recipe, loss in gpu_parts.other_recipes()}
        assert {one["case"] for one in figures} == cases
    if part == "resume":
        assert figures[0]["value"] <= 1e-6
