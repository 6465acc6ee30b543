"""training_ratio: tokens/s and peak memory of recipe prism over what a user would otherwise run, on the CPU.

Qwen3's shape with hidden 1,024, 4 layers and a vocabulary of 151,936, fp32, rows of up to 512
tokens whose lengths are log-normal; against (a) TRL's SFTTrainer with its defaults and the point
term, (b) transformers' Trainer with `logits_to_keep` (tools.bench.competing_trainers). Three
interleaved runs of all, medians. `make bench-gpu` has the GPU.
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
    """Speed and memory over both."""
    return compare("CPU", CPU, RUNS)


def compare(words: str, shape: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    """Run every side `runs` times in turns; figures are ratios of medians."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder), shape)
        found = [{side: run_side(side, Path(folder), shape) for side in SIDES} for _ in range(runs)]
    middle = {
        side: {key: median(one[side][key] for one in found) for key in ("tokens_per_s", "peak_mb", "loss")}
        for side in SIDES
    }
    return [figure for side in THEIRS for figure in figures_over(side, middle, words, shape)]


def figures_over(
    side: str, middle: dict[str, dict[str, float]], words: str, shape: dict[str, Any]
) -> list[dict[str, Any]]:
    """The two ratios over one competitor."""
    ours, theirs = middle["ours"], middle[side]
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
    if side == "trainer":  # the same loss; TRL's is a mean over tokens
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
