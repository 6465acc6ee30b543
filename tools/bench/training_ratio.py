"""training_ratio: tokens/s and peak memory of the recipe prism divided by those of other trainers, on the CPU.

The model has Qwen3's architecture with hidden size 1,024, 4 layers and a vocabulary of 151,936, in fp32; rows have up
to 512 tokens with log-normal lengths. The other trainers are (a) TRL's SFTTrainer with its defaults and the point loss,
and (b) transformers' Trainer with `logits_to_keep` (tools.bench.competing_trainers). All run three times in turns, and
figures are of their medians. `make bench-gpu` measures the same on a GPU.
"""

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench.competing_trainers import SIDES, run_side, write_scene

CPU = {
    "hidden": 1024, "layers": 4, "intermediate": 3072, "heads": 16, "length": 512, "budget": 2048, "batch": 8,
    "steps": 3, "device": "cpu",
}  # fmt: skip
RUNS = 3
THEIRS = {"sft": "(a) TRL's SFTTrainer", "trainer": "(b) Trainer with logits_to_keep"}
AIMS = {"sft": 1.0, "trainer": 0.95}
MEMORY_AIM = 1.05


def measure() -> list[dict[str, Any]]:
    """Return the ratios of speed and memory to both trainers."""
    return compare("CPU", CPU, RUNS)


def compare(words: str, shape: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    """Run every side `runs` times in turns, and return the ratios of their medians."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder), shape)
        runs_of_sides = [{side: run_side(side, Path(folder), shape) for side in SIDES} for _ in range(runs)]
    medians = {
        side: {key: median(run[side][key] for run in runs_of_sides) for key in ("tokens_per_s", "peak_mb", "loss")}
        for side in SIDES
    }
    return [figure for side in THEIRS for figure in figures_over(side, medians, words, shape)]


def figures_over(
    side: str, medians: dict[str, dict[str, float]], words: str, shape: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the two ratios to one of the other trainers."""
    ours, theirs = medians["ours"], medians[side]
    case = (
        f"{THEIRS[side]}, {words}, hidden {shape['hidden']}, {shape['layers']} layers, up to {shape['length']} tokens"
    )
    speed = {
        "name": "training_ratio",
        "case": f"tokens/s over {case}",
        "value": round(ours["tokens_per_s"] / theirs["tokens_per_s"], 2),
        "unit": "x",
        "aim": AIMS[side],
        "tokens_per_s": ours["tokens_per_s"],
        "their_tokens_per_s": theirs["tokens_per_s"],
    }
    # Trainer has the same loss, while TRL's is a mean over tokens.
    if side == "trainer":
        speed["losses_differ_by"] = float(f"{abs(ours['loss'] / theirs['loss'] - 1):.1e}")
    memory = {
        "name": "training_ratio",
        "case": f"peak memory of the process over {case}",
        "value": round(ours["peak_mb"] / theirs["peak_mb"], 2),
        "unit": "x",
        "aim": f"{MEMORY_AIM} at most",
        "peak_mb": ours["peak_mb"],
        "their_peak_mb": theirs["peak_mb"],
    }
    return [speed, memory]
