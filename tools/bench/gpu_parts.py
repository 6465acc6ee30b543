"""The parts of `make bench-gpu` (tools.bench.gpu): each takes a setting and a folder, and returns figures."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench import competing_trainers, rerank_ratio, training_ratio

Figure = dict[str, Any]
# Options of recipes that differ from their presets here: a base with random weights has no template, and the paper's
# round of 6,400 rollouts with 1,024 tokens would take longer than all other parts.
ON_GPU: dict[str, dict[str, Any]] = {
    "prism-extend": {"teacher_prompt": "qwen3-reranker"},
    "erank-grpo": {"batch": 48, "mini_batch": 24, "max_response": 128, "epochs": 10.0},
}


@dataclass(frozen=True)
class Setting:
    """The device of the parts, the sizes of their models (see competing_trainers.write_scene), and their steps."""

    device: str
    steps: int
    small: dict[str, Any]
    large: dict[str, Any]
    runs: int = 3  # Runs of each side of a ratio.
    documents: tuple[int, ...] = (100, 400, 800, 1600)  # Tokens of a document, for the speed of scoring.
    few: int = 12  # Steps of trainings that are not timed.
    scored_words: int = 60_000  # Words of the documents that each comparison of scorers scores at each length.
    aims: dict[str, float] = field(default_factory=dict)


def measure_matrices(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the operations per second of large matrix products in bf16."""
    rate = matrix_rate(setting.device)
    return [{"case": "bf16 matrix products", "value": round(rate / 1e12, 3), "unit": "TFLOP/s"}]


def matrix_rate(device: str) -> float:
    """Return the operations per second of a product of square bf16 matrices, the best of five."""
    import torch

    size, rounds = (8192, 20) if device == "cuda" else (256, 2)
    matrix = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    rates = []
    for _ in range(5):
        started_at = time.perf_counter()
        for _ in range(rounds):
            matrix @ matrix
        synchronise(device)
        rates.append(rounds * 2 * size**3 / (time.perf_counter() - started_at))
    return max(rates)


def synchronise(device: str) -> None:
    """Wait until the GPU has finished its work."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def train_small(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the recipe prism with the small model."""
    return _train_prism(setting, folder / "small", setting.small)


def train_large(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the recipe prism with the large model."""
    return _train_prism(setting, folder / "large", setting.large)


def scene(folder: Path, shape: dict[str, Any], steps: int) -> dict[str, Any]:
    """Write the base, set and rows of a shape unless they exist, and return the shape with its steps."""
    shape = {**shape, "steps": steps}
    if not (folder / "rows.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        competing_trainers.write_scene(folder, shape)
    return shape


def _train_prism(setting: Setting, folder: Path, shape: dict[str, Any]) -> list[Figure]:
    lines = competing_trainers.prism_lines(folder, scene(folder, shape, setting.steps))
    rate = median(line["tokens_per_s"] for line in lines[1:])
    peak = competing_trainers.peak_memory(setting.device) / 2**20
    rows = [len(row["ids"]) for row in competing_trainers.load_rows(folder)]
    share = rate * operations_per_token(shape, rows) / matrix_rate(setting.device)
    case = f"hidden {shape['hidden']}, {shape['layers']} layers, up to {shape['length']} tokens"
    return [
        {"case": case, "value": round(rate, 1), "unit": "tokens/s", "steps": len(lines)},
        {
            "case": f"MFU, {case}",
            "value": round(share, 4),
            "unit": "of the bf16 matrix rate",
            "aim": setting.aims.get("mfu"),
        },
        {"case": f"peak memory, {case}", "value": round(peak, 1), "unit": "MB"},
    ]


def operations_per_token(shape: dict[str, Any], lengths: Sequence[int]) -> float:
    """Return the floating-point operations of LoRA for a token, without recomputation and the head.

    They are 4 for each frozen weight of the layers (forward, and backward to the activations), 6 for each weight of the
    adapter, and those of causal attention: 2 products of 2 x tokens x width / 2 forward, twice as many backward.
    """
    wide, head, kv = shape["hidden"], shape["head"], shape["kv"]
    outer = shape["heads"] * head
    linear = [(wide, outer), (wide, kv * head), (wide, kv * head), (outer, wide)]
    linear += [(wide, shape["intermediate"])] * 2 + [(shape["intermediate"], wide)]
    frozen = sum(rows * columns for rows, columns in linear)
    adapter = sum(competing_trainers.RANK * (rows + columns) for rows, columns in linear)
    # The mean length of the row of a token.
    attended = sum(length * length for length in lengths) / sum(lengths)
    return float(shape["layers"] * (4 * frozen + 6 * adapter + 6 * attended * outer))


def compare_small(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the ratios of training_ratio on this device with the small model."""
    return _compare_trainers(setting, setting.small, setting.runs)


def compare_large(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the ratios of training_ratio on this device with the large model, in one run."""
    return _compare_trainers(setting, setting.large, 1)


def _compare_trainers(setting: Setting, shape: dict[str, Any], runs: int) -> list[Figure]:
    device = "GPU" if setting.device == "cuda" else "CPU"
    return training_ratio.compare(device, {**shape, "steps": min(setting.steps, 5)}, runs)


def compare_scorers(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the ratios of rerank_ratio on this device with a published model of the small shape."""
    published, _ = publish_model(setting, folder)
    size = f"hidden {setting.small['hidden']}, {setting.small['layers']} layers"
    return [
        rerank_ratio.compare("causal", published, length, count_queries(setting, length), size)
        for length in setting.documents
    ]


def count_queries(setting: Setting, length: int) -> int:
    """Return how many queries are scored with documents of this length."""
    return max(1, setting.scored_words // (rerank_ratio.DOCUMENTS * length))


def ask_vllm(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the pairs per second of vLLM's score endpoint and of the scorer, with the same published model."""
    from tools.bench import vllm_scores
    from training.published.opening import open_scorer
    from training.recipes.rendering import QUORUM

    if (program := vllm_scores.find_program()) is None:
        skipped = "vllm is not installed: python3 -m venv .venvs/vllm && .venvs/vllm/bin/pip install vllm"
        return [{"case": "vLLM's score endpoint", "value": None, "unit": "pairs/s", "skipped": skipped}]
    published, _ = publish_model(setting, folder)
    requests = {
        length: list(serving_requests(length, rerank_ratio.DOCUMENTS, count_queries(setting, length)))
        for length in setting.documents
    }
    answers = {}
    with vllm_scores.serve(program, published) as address:
        for length in requests:
            pairs = []
            for request in requests[length]:
                head, tail = QUORUM.render(request.query, "\0").split("\0")
                pairs += [(head, document + tail) for document in request.documents]
            answers[length] = vllm_scores.measure_pairs(address, pairs)
    # Opened once the server has given its memory back.
    scorer = open_scorer(published, setting.device)
    figures = []
    for length, (rate, scores) in answers.items():
        scorer.score(requests[length][:1])
        started_at = time.perf_counter()
        margins = [score.margin for answer in scorer.score(requests[length]) for score in answer]
        synchronise(setting.device)
        seconds = time.perf_counter() - started_at
        differences = [1 / (1 + math.exp(-margin)) - score for margin, score in zip(margins, scores, strict=True)]
        figures.append(
            {
                "case": f"vLLM's score endpoint, documents of {length} words",
                "value": round(rate, 1),
                "unit": "pairs/s",
                "our_pairs_per_s": round(len(margins) / seconds, 1),
                "greatest_difference": float(f"{max(map(abs, differences)):.1e}"),
            }
        )
    return figures


def train_others(setting: Setting, folder: Path) -> list[Figure]:
    """Measure every other recipe with each of its losses, on its kind of base and set."""
    return [figure for recipe, loss in other_recipes() for figure in train_recipe(recipe, loss, setting, folder)]


def other_recipes() -> list[tuple[str, str]]:
    """Return the other recipes in the table, one row for each of their losses."""
    from training.recipes import table

    return [(recipe, loss) for recipe, losses in table.LOSSES.items() if recipe != "prism" for loss in losses]


def train_recipe(recipe: str, loss: str, setting: Setting, folder: Path) -> list[Figure]:
    """Measure some steps of one recipe, trained with the classes that `train` uses, without publishing."""
    import torch

    steps = 3 if recipe == "erank-grpo" else setting.steps
    task = make_task(recipe, setting, folder, {"max_steps": steps, "loss": loss})
    from training.recipes.job_folder import JobFolder
    from training.trainers.training import open_recipe

    if setting.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    job = JobFolder(folder / f"job-{recipe}-{loss}")
    job.path.mkdir()
    open_recipe(task).train(job, lambda: False)
    lines = [line for line in job.read_metrics() if "loss" in line]
    rates = [line["tokens_per_s"] for line in lines[1:] or lines if line.get("tokens_per_s")]
    figure = {
        "case": f"{recipe}, loss {loss}",
        "value": round(median(rates), 1) if rates else None,
        "unit": "tokens/s",
        "steps": len(lines),
    }
    figure["peak_mb"] = round(competing_trainers.peak_memory(setting.device) / 2**20, 1)
    figure |= {key: lines[-1][key] for key in ("reward_mean", "reward") if key in lines[-1]}
    return [figure]


def make_task(recipe: str, setting: Setting, folder: Path, option_values: dict[str, Any]) -> Any:
    """Return the task of a recipe, with a base of its kind and a set in its format."""
    from training.recipes import table
    from training.trainers.recipe import TrainingTask
    from training.trainers.training import import_named

    entry = table.RECIPES[recipe]
    base = make_base(entry.base, setting, folder)
    data = make_set(entry.format, setting, folder)
    options = table.recipe_options(recipe, {**own_options(recipe, setting.device), **option_values})
    return TrainingTask(recipe, base, base.name, import_named(entry.reader)(data), options, setting.device, False)


def own_options(recipe: str, device: str) -> dict[str, Any]:
    """Return the options of a recipe: the preset tiny on a CPU, and the paper's with the changes of ON_GPU on a GPU."""
    if device == "cpu":
        return {"preset": "tiny", "evaluate_every": 10**6}
    return {"evaluate_every": 10**6, "epochs": 1000.0, **ON_GPU.get(recipe, {})}


def make_base(kind: str, setting: Setting, folder: Path) -> Path:
    """Return the folder of a base with random weights, the small causal model or an encoder of BERT's size."""
    if kind != "encoder":
        scene(folder / "small", setting.small, setting.steps)
        return folder / "small" / "base"
    from training.published.tiny_bases import tiny_encoder

    size = {"hidden": 768, "layers": 12} if setting.device == "cuda" else {"hidden": 32, "layers": 2}
    encoder = folder / "encoder"
    return encoder if encoder.exists() else tiny_encoder(encoder, **size, max_length=512)


def make_set(export_format: str, setting: Setting, folder: Path) -> Path:
    """Return the folder of a training set in this format, without a dev split."""
    data = folder / f"set-{export_format}"
    if data.exists():
        return data
    if export_format == "erank-sft":
        from tests.training.trainers.learnable import export_scores

        return export_scores(data, queries=8, dev=0)
    if export_format == "rtriever":
        from tests.training.recipes.test_bundles import row, write

        return write(data, [row(number) for number in range(40)])
    from tests.training_sets import write_set

    write_set(data, queries=20, documents=16)
    (data / "dev.jsonl").unlink()
    manifest = json.loads((data / "manifest.json").read_text())
    (data / "manifest.json").write_text(json.dumps({**manifest, "files": []}))
    return data


def kill_and_resume(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the largest difference of a loss between a training that is killed and resumed, and another one."""
    data = make_set("prism", setting, folder)
    base = make_base("causal", setting, folder)
    uninterrupted, killed = (request_job(folder / name, base, data, setting) for name in ("whole", "broken"))
    run_job(uninterrupted)
    child = start_job(killed)
    until_step(killed, setting.few // 2, child)
    child.send_signal(signal.SIGKILL)
    child.wait()
    run_job(killed)
    pairs = list(zip(losses_of(uninterrupted), losses_of(killed), strict=True))
    worst = max(abs(loss - other) / abs(loss) for loss, other in pairs)
    return [
        {"case": "largest relative difference of a loss", "value": worst, "unit": "", "aim": 1e-6, "steps": len(pairs)}
    ]


def request_job(
    path: Path, base: Path, data: Path, setting: Setting, subset: dict[str, Any] | None = None, **options: Any
) -> Path:
    """Write the folder of a training for `python -m training.trainer`, and return it."""
    from training.recipes.job_folder import JobFolder

    option_values = {"preset": "tiny", "max_steps": setting.few, "checkpoint_every": 2, **options}
    request = {"kind": "train", "recipe": "prism", "data": str(data), "base": str(base), "out": str(path / "out")}
    JobFolder(path).write_request({**request, "device": setting.device, "options": option_values, "subset": subset})
    return path


def start_job(path: Path) -> "subprocess.Popen[str]":
    """Start the trainer of a job, as a worker does."""
    command = [sys.executable, "-W", "ignore", "-m", "training.trainer", str(path)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_job(path: Path) -> str:
    """Run a job and return its output. Raises RuntimeError if it fails."""
    child = start_job(path)
    output, _ = child.communicate()
    if child.returncode:
        raise RuntimeError((output.strip().splitlines() or ["it printed nothing"])[-1])
    return output


def losses_of(path: Path) -> list[float]:
    """Return the loss of each step of a job, the later one if a step was done twice."""
    from training.recipes.job_folder import JobFolder

    losses = {line["step"]: float(line["loss"]) for line in JobFolder(path).read_metrics() if "loss" in line}
    return [losses[step] for step in sorted(losses)]


def until_step(path: Path, step: int, child: "subprocess.Popen[str]") -> None:
    """Wait until a job has done so many steps."""
    while len(losses_of(path)) < step and child.poll() is None:
        time.sleep(0.02)


def train_curve(setting: Setting, folder: Path) -> list[Figure]:
    """Measure two points of a learning curve, each from writing the subset to publishing the model."""
    from tests.training_sets import write_set

    data, base = write_set(folder / "set-curve", queries=20, documents=8), make_base("causal", setting, folder)
    figures = []
    for point in (64, 128):
        subset = {"order": "random", "seed": 0, "points": [64, 128], "asked": point}
        path = request_job(folder / f"curve-{point}", base, data, setting, subset=subset)
        started_at = time.perf_counter()
        run_job(path)
        seconds = round(time.perf_counter() - started_at, 1)
        figures.append({"case": f"{point} labels", "value": seconds, "unit": "s", "steps": len(losses_of(path))})
    return figures


def run_out_of_memory(setting: Setting, folder: Path) -> list[Figure]:
    """Train with a token budget far beyond the memory, and count how often it is halved on a GPU."""
    data, base = make_set("prism", setting, folder), make_base("causal", setting, folder)
    huge: dict[str, Any] = {"token_budget": 10**7, "batch": 128, "max_steps": 2, "gradient_checkpointing": False}
    output = run_job(request_job(folder / "huge", base, data, setting, **huge))
    halved = output.count("out of memory")
    needed = 1 if setting.device == "cuda" else 0
    return [{"case": "times that the budget was halved", "value": halved, "unit": "", "aim": f"{needed} and more"}]


def publish_model(setting: Setting, folder: Path) -> tuple[Path, float]:
    """Train and publish a model of the small shape, unless it is there; return its folder and the seconds."""
    from tests.training_sets import write_set

    path = folder / "published"
    if not (path / "seconds").exists():
        # A part before may have failed in the middle of this.
        for rest in (path, folder / "set-published"):
            shutil.rmtree(rest, ignore_errors=True)
        data = write_set(folder / "set-published", queries=10, documents=8)
        sizes = {"max_length": setting.small["length"], "token_budget": setting.small["budget"]}
        request_job(path, make_base("causal", setting, folder), data, setting, **sizes)
        started_at = time.perf_counter()
        run_job(path)
        (path / "seconds").write_text(str(time.perf_counter() - started_at))
    return path / "out", float((path / "seconds").read_text())


def publish_and_compare(setting: Setting, folder: Path) -> list[Figure]:
    """Train and publish a model, and compare its scores on the CPU in fp32 with those on the device."""
    published, seconds = publish_model(setting, folder)
    figures = [{"case": "training and publishing", "value": round(seconds, 1), "unit": "s"}]
    requests = list(serving_requests(40, 10, 3))
    true = margins_of(published, "cpu", "fp32", requests)
    for precision in ("fp32", "bf16") if setting.device == "cuda" else ("fp32",):
        margins = margins_of(published, setting.device, precision, requests)
        worst = max(abs(expected - other) for expected, other in zip(true, margins, strict=True))
        case = f"largest difference of a margin, {setting.device} {precision}"
        figures.append({"case": case, "value": worst, "unit": "", "pairs": len(true)})
    return figures


def margins_of(folder: Path, device: str, precision: str, requests: Sequence[Any]) -> list[float]:
    """Return the raw margins of all pairs in the requests."""
    from training.published.opening import open_scorer

    scorer = open_scorer(folder, device, precision=precision)
    return [score.margin for answer in scorer.score(requests) for score in answer]


def serving_requests(tokens: int, documents: int, queries: int) -> Iterator[Any]:
    """Yield requests with documents of about this many tokens."""
    from training.published.protocol import ServingRequest

    words = ["key", "value", "mapping", "object", "class", "loop", "string", "name", "file", "error"]
    generator = random.Random(0)
    for number in range(queries):
        texts = [" ".join(generator.choice(words) for _ in range(tokens)) for _ in range(documents)]
        yield ServingRequest(query=f"what is a {words[number % len(words)]}", documents=texts)


def measure_scoring(setting: Setting, folder: Path) -> list[Figure]:
    """Measure the pairs per second of the scorer used by `rerank` and the endpoint, with 20 documents for a query."""
    from training.published.opening import open_scorer

    published, _ = publish_model(setting, folder)
    precision = "bf16" if setting.device == "cuda" else "fp32"
    scorer = open_scorer(published, setting.device, precision=precision)
    figures = []
    for tokens in setting.documents:
        requests = list(serving_requests(tokens, 20, 10 if setting.device == "cuda" else 1))
        scorer.score(requests[:1])
        synchronise(setting.device)
        started_at = time.perf_counter()
        scorer.score(requests)
        synchronise(setting.device)
        rate = 20 * len(requests) / (time.perf_counter() - started_at)
        figures.append(
            {"case": f"documents of {tokens} words, {precision}", "value": round(rate, 1), "unit": "pairs/s"}
        )
    return figures
