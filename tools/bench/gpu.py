"""`make bench-gpu`: the performance of training and reranking on one GPU, part by part, without downloads from the hub.

The models have real sizes and random weights: Qwen3's 0.6B and 4B, an encoder of BERT's size, embeddings of the 0.6B.
Each part runs in a separate process that prints JSON lines; if a part fails, its line says why, and the others still
run. The figures of finished parts are kept in a file, and the next run on the same GPU continues with the others, so
that ten minutes of a machine give figures. Where nvidia-smi does not answer, the command prints what it would do and
exits with 0. The parts are tested with tiny sizes on the CPU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.processes import spawn_child, stop_children
from tools.bench import gpu_parts, report
from tools.bench.gpu_parts import Setting

Figure = dict[str, Any]
WHOLE_S = 540.0  # Of one run, with a minute left of ten for what surrounds it.
KEPT = Path(__file__).parents[2] / "bench-gpu.jsonl"


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
TINY = Setting(
    device="cpu", steps=2, small=TINY_SHAPE, large=TINY_SHAPE, runs=1, documents=(20,), few=6, scored_words=400
)

# For each part: what it measures, the seconds that it may take on a GPU, and its function. The comparisons come first.
PARTS: dict[str, tuple[str, float, Callable[[Setting, Path], list[Figure]]]] = {
    "matrices": ("the rate of bf16 matrix products", 20, gpu_parts.measure_matrices),
    "prism-small": ("recipe prism, 0.6B at 4,096 in bf16: tokens/s, MFU, peak memory", 60, gpu_parts.train_small),
    "ratios": (
        "0.6B: tokens/s of prism over SFTTrainer and Trainer, three runs each",
        120,
        gpu_parts.compare_small,
    ),
    "rerank": ("0.6B: pairs/s of the scorer over CrossEncoder, by length of document", 90, gpu_parts.compare_scorers),
    "prism-large": ("recipe prism, 4B at 4,096 in bf16: tokens/s, MFU, peak memory", 110, gpu_parts.train_large),
    "ratios-large": ("4B: tokens/s of prism over SFTTrainer and Trainer, a run each", 120, gpu_parts.compare_large),
    "vllm": (
        "0.6B: pairs/s of vLLM's score endpoint, if it is installed",
        120,
        gpu_parts.ask_vllm,
    ),
    "recipes": (
        "tokens/s and peak memory, GRPO with real sampling, of "
        + ", ".join(f"{recipe} ({loss})" for recipe, loss in gpu_parts.other_recipes()),
        120,
        gpu_parts.train_others,
    ),
    "scoring": ("pairs/s of rerank and of the endpoint by length of document", 60, gpu_parts.measure_scoring),
    "publish": ("publishing, and scores on the GPU against the CPU's in fp32", 60, gpu_parts.publish_and_compare),
    "resume": ("killed and resumed: the losses of an uninterrupted training", 60, gpu_parts.kill_and_resume),
    "memory": ("out of memory: the token budget is halved", 40, gpu_parts.run_out_of_memory),
    "curve": ("two points of a learning curve, each from its labels to a published model", 60, gpu_parts.train_curve),
}


def main(arguments: Sequence[str]) -> int:
    """Run the named parts, by default all that have no figures yet, and return the exit code, 1 if any failed."""
    parser = argparse.ArgumentParser(prog="make bench-gpu", description="Measure on one GPU, part by part.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--again", action="store_true", help="measure the parts that have figures, too")
    parser.add_argument("--file", type=Path, default=KEPT, help="where the figures are kept (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=WHOLE_S, help="time of this run (default: %(default)g)")
    parser.add_argument("--table", action="store_true", help="print the kept figures as rows of docs/benchmarks.md")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        print(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    part_names = options.parts or list(PARTS)
    if options.table:
        print("\n".join(report.row(figure) for figure in read_figures(options.file)))
        return 0
    if not (gpu := name_gpu()):
        print("no GPU that nvidia-smi names: nothing was measured. With one, `make bench-gpu` would measure")
        for name in part_names:
            print(f"  {name}: {PARTS[name][0]} (at most {PARTS[name][1]:.0f} s)")
        return 0
    import torch

    if not torch.cuda.is_available():
        print(f"torch {torch.__version__} does not see {gpu}: run `sh config/install.sh gpu`", file=sys.stderr)
        return 2
    figures = run_parts(GPU, part_names, options.seconds, options.file, gpu, again=options.again)
    return int(any("error" in figure for figure in figures))


def name_gpu() -> str:
    """Return the name of the first GPU; empty where nvidia-smi is missing or does not answer."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.partition("\n")[0].strip()


def read_figures(file: Path) -> list[Figure]:
    """Return the kept figures, without a line that a killed run has not finished."""
    figures = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            figures.append(json.loads(line))
        except ValueError:
            continue
    return figures


def run_parts(
    setting: Setting, part_names: Sequence[str], seconds: float, file: Path, gpu: str, *, again: bool = False
) -> list[Figure]:
    """Run each part in a separate process, as long as there is time; return the figures of all that are finished.

    1. The figures of parts that this GPU finished before are taken from the file, unless `again`.
    2. A part that needs more time than is left is left to the next run; shorter ones still run.
    3. The figures of a finished part are printed and appended to the file. Errors and what is not installed are only
       printed, so that the next run tries again.
    """
    deadline, all_figures, left = time.monotonic() + seconds, list[Figure](), list[str]()
    kept = [] if again else [figure for figure in read_figures(file) if figure.get("gpu") == gpu]
    with tempfile.TemporaryDirectory() as folder:
        for name in part_names:
            if figures := [figure for figure in kept if figure["part"] == name]:
                print(f"{name}: {len(figures)} figures of {figures[0]['date']} are in {file}", file=sys.stderr)
            elif (timeout := deadline - time.monotonic()) < PARTS[name][1]:
                left.append(name)
            else:
                marks = {"part": name, "gpu": gpu, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
                figures = [{**figure, **marks} for figure in run_part(name, setting, Path(folder), timeout)]
                lines = "".join(json.dumps(figure, ensure_ascii=False) + "\n" for figure in figures)
                print(lines, end="", flush=True)
                if all(figure["value"] is not None for figure in figures):
                    with file.open("a", encoding="utf-8") as output:
                        output.write(lines)
            all_figures += figures
    if left:
        print(f"no time was left for {', '.join(left)}: the same command continues with them", file=sys.stderr)
    return all_figures


def run_part(name: str, setting: Setting, folder: Path, timeout: float) -> list[Figure]:
    """Return the figures of one part; a failure becomes a figure with an error and without a value."""
    command = [sys.executable, "-W", "ignore", "-m", "tools.bench.gpu", "--part", name, str(folder)]
    setting_json = json.dumps(asdict(setting))
    process = spawn_child([*command, setting_json], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return [_failed(name, "it did not end in the time that was left")]
    finally:
        # With the processes that it started, which would keep the GPU's memory from the next part.
        stop_children([process])
    figures = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if process.returncode:
        error = (errors.strip().splitlines() or ["it printed nothing"])[-1]
        figures.append(_failed(name, error[:300]))
    return figures


def _failed(name: str, error: str) -> Figure:
    return {"name": name, "value": None, "unit": "", "error": error}


def run_here(name: str, folder: Path, setting_values: dict[str, Any]) -> None:
    """Print the figures of a part, in the child process."""
    import django

    django.setup()
    setting = Setting(**{**setting_values, "documents": tuple(setting_values["documents"])})
    for figure in PARTS[name][2](setting, folder):
        print(json.dumps({"name": name, **figure}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:2] == ["--part"]:
        run_here(sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4]))
    else:
        sys.exit(main(sys.argv[1:]))
