"""`make bench-gpu`: the performance of each recipe on one GPU, in under nine minutes, without downloads from the hub.

The models have real sizes and random weights: Qwen3's 0.6B and 4B, an encoder of BERT's size, embeddings of the 0.6B.
Each part runs in a separate process that prints JSON lines; if a part fails, its line says why, and the others still
run. Without a GPU, the command prints what it would do and exits with 0. The parts are tested with tiny sizes on the
CPU.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.bench import gpu_parts
from tools.bench.gpu_parts import Setting

Figure = dict[str, Any]
WHOLE_S = 540.0


SHAPE = {"length": 4096, "budget": 16_384, "batch": 8, "head": 128, "kv": 8, "device": "cuda"}
GPU = Setting(
    device="cuda",
    steps=30,
    small={**SHAPE, "hidden": 1024, "layers": 28, "intermediate": 3072, "heads": 16},
    large={**SHAPE, "hidden": 2560, "layers": 36, "intermediate": 9728, "heads": 32, "budget": 8192, "batch": 4},
    aims={"mfu": 0.45},
)
TINY_SHAPE = {
    "hidden": 32, "layers": 2, "intermediate": 64, "heads": 4, "head": 8, "kv": 2, "length": 384, "budget": 1536,
    "batch": 4, "device": "cpu", "vocabulary": 8000,
}  # fmt: skip
TINY = Setting(device="cpu", steps=2, small=TINY_SHAPE, large=TINY_SHAPE, runs=1, documents=(20,), few=6)

# For each part: what it measures, the seconds that it may take on a GPU, and its function.
PARTS: dict[str, tuple[str, float, Callable[[Setting, Path], list[Figure]]]] = {
    "matrices": ("the rate of bf16 matrix products", 20, gpu_parts.measure_matrices),
    "prism-small": ("recipe prism, 0.6B at 4,096: tokens/s, MFU, peak memory", 60, gpu_parts.train_small),
    "prism-large": ("recipe prism, 4B at 4,096: tokens/s, MFU, peak memory", 110, gpu_parts.train_large),
    "ratios": ("recipe prism over SFTTrainer and Trainer, three runs each", 120, gpu_parts.compare_trainers),
    "recipes": (
        "tokens/s and peak memory, GRPO with real sampling, of "
        + ", ".join(f"{recipe} ({loss})" for recipe, loss in gpu_parts.other_recipes()),
        120,
        gpu_parts.train_others,
    ),
    "curve": ("two points of a learning curve, each from its labels to a published model", 60, gpu_parts.train_curve),
    "resume": ("killed and resumed: the losses of an uninterrupted training", 60, gpu_parts.kill_and_resume),
    "memory": ("out of memory: the token budget is halved", 40, gpu_parts.run_out_of_memory),
    "publish": ("publishing, and scores on the GPU against the CPU's in fp32", 60, gpu_parts.publish_and_compare),
    "scoring": ("pairs/s of rerank and of the endpoint by length of document", 60, gpu_parts.measure_scoring),
}


def main(part_names: list[str]) -> int:
    """Run the named parts, by default all, and return the exit code, 1 if any failed."""
    import torch

    if unknown := set(part_names) - set(PARTS):
        print(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("no GPU that torch sees: nothing was measured. With one, `make bench-gpu` would measure")
        for name in part_names or PARTS:
            print(f"  {name}: {PARTS[name][0]} (at most {PARTS[name][1]:.0f} s)")
        return 0
    figures = run_parts(GPU, part_names or list(PARTS), WHOLE_S)
    return int(any(figure.get("value") is None for figure in figures))


def run_parts(setting: Setting, part_names: list[str], seconds: float) -> list[Figure]:
    """Run each part in a separate process as long as there is time, print its figures, and return all."""
    deadline, all_figures = time.monotonic() + seconds, []
    with tempfile.TemporaryDirectory() as folder:
        for name in part_names:
            timeout = deadline - time.monotonic()
            if timeout > 0:
                figures = run_part(name, setting, Path(folder), timeout)
            else:
                figures = [_failed(name, "no time was left")]
            for figure in figures:
                print(json.dumps(figure, ensure_ascii=False), flush=True)
            all_figures += figures
    return all_figures


def run_part(name: str, setting: Setting, folder: Path, timeout: float) -> list[Figure]:
    """Return the figures of one part; a failure becomes a figure without a value."""
    command = [sys.executable, "-W", "ignore", "-m", "tools.bench.gpu", "--part", name, str(folder)]
    setting_json = json.dumps(asdict(setting))
    try:
        process = subprocess.run([*command, setting_json], capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return [_failed(name, "it did not end in the time that was left")]
    figures = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    if process.returncode:
        error = (process.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        figures.append(_failed(name, error[:300]))
    return figures


def _failed(name: str, error: str) -> Figure:
    return {"name": name, "value": None, "unit": "", "error": error}


def run_here(name: str, folder: Path, setting_values: dict[str, Any]) -> None:
    """Print the figures of a part, in the child process."""
    setting = Setting(**{**setting_values, "documents": tuple(setting_values["documents"])})
    for figure in PARTS[name][2](setting, folder):
        print(json.dumps({"name": name, **figure}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if sys.argv[1:2] == ["--part"]:
        run_here(sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4]))
    else:
        sys.exit(main(sys.argv[1:]))
