"""The parts of `make bench-gpu` (tools.bench.gpu): each takes a setting and a folder, and returns figures."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench import competing_trainers, training_ratio

Figure = dict[str, Any]
# What the recipes need here beside their presets: a base of random weights brings no template, and
# 6,400 rollouts of 1,024 tokens, which is the paper's round, take longer than all of this. Sets are
# small: many epochs make the steps.
ON_GPU: dict[str, dict[str, Any]] = {
    "prism-extend": {"teacher_prompt": "qwen3-reranker"},
    "erank-grpo": {"batch": 48, "mini_batch": 24, "max_response": 128, "epochs": 10.0},
}


@dataclass(frozen=True)
class Setting:
    """Where the parts run, with which shapes (see competing_trainers.write_scene), and how long."""

    device: str
    steps: int
    small: dict[str, Any]
    large: dict[str, Any]
    runs: int = 3  # Of each side of a ratio.
    documents: tuple[int, ...] = (100, 400, 800, 1600)  # Tokens of a document, for rates of scoring.
    few: int = 12  # Steps of what is tried rather than timed.
    aims: dict[str, float] = field(default_factory=dict)


def measure_matrices(setting: Setting, folder: Path) -> list[Figure]:
    """Operations a second of large bf16 products."""
    rate = matrix_rate(setting.device)
    return [{"case": "bf16 matrix products", "value": round(rate / 1e12, 3), "unit": "TFLOP/s"}]


def matrix_rate(device: str) -> float:
    """Operations a second of a bf16 product of square matrices, the best of five."""
    import torch

    size, rounds = (8192, 20) if device == "cuda" else (256, 2)
    left = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    found = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(rounds):
            left @ left
        synchronise(device)
        found.append(rounds * 2 * size**3 / (time.perf_counter() - begun))
    return max(found)


def synchronise(device: str) -> None:
    """Wait until the GPU has done what it was given."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def train_small(setting: Setting, folder: Path) -> list[Figure]:
    """Recipe prism at the small shape."""
    return _train_prism(setting, folder / "small", setting.small)


def train_large(setting: Setting, folder: Path) -> list[Figure]:
    """Recipe prism at the large shape."""
    return _train_prism(setting, folder / "large", setting.large)


def scene(folder: Path, shape: dict[str, Any], steps: int) -> dict[str, Any]:
    """The base, set and rows of a shape, made once; return the shape with its steps."""
    whole = {**shape, "steps": steps}
    if not (folder / "rows.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        competing_trainers.write_scene(folder, whole)
    return whole


def _train_prism(setting: Setting, folder: Path, shape: dict[str, Any]) -> list[Figure]:
    whole = scene(folder, shape, setting.steps)
    lines = competing_trainers.prism_lines(folder, whole)
    rate = median(line["tokens_per_s"] for line in lines[1:])
    peak = competing_trainers.peak_memory(setting.device) / 2**20
    rows = [len(row["ids"]) for row in competing_trainers.load_rows(folder)]
    share = rate * operations_per_token(shape, rows) / matrix_rate(setting.device)
    named = f"hidden {shape['hidden']}, {shape['layers']} layers, up to {shape['length']} tokens"
    return [
        {"case": named, "value": round(rate, 1), "unit": "tokens/s", "steps": len(lines)},
        {
            "case": f"MFU, {named}",
            "value": round(share, 4),
            "unit": "of the bf16 matrix rate",
            "aim": setting.aims.get("mfu"),
        },
        {"case": f"peak memory, {named}", "value": round(peak, 1), "unit": "MB"},
    ]


def operations_per_token(shape: dict[str, Any], rows: Sequence[int]) -> float:
    """Floating-point operations of LoRA's forward and backward for a token; recomputation and the head not counted.

    4 for each frozen weight of the layers (forward, and backward to the activations), 6 for each of
    the adapter, and causal attention: 2 products of 2 x tokens x width / 2 forward, twice that
    backward.
    """
    wide, head, kv = shape["hidden"], shape["head"], shape["kv"]
    outer = shape["heads"] * head
    linear = [(wide, outer), (wide, kv * head), (wide, kv * head), (outer, wide)]
    linear += [(wide, shape["intermediate"])] * 2 + [(shape["intermediate"], wide)]
    frozen = sum(a * b for a, b in linear)
    adapter = sum(competing_trainers.RANK * (a + b) for a, b in linear)
    attended = sum(one * one for one in rows) / sum(rows)  # tokens that a token's row has, on average
    return float(shape["layers"] * (4 * frozen + 6 * adapter + 6 * attended * outer))


def compare_trainers(setting: Setting, folder: Path) -> list[Figure]:
    """The fair ratios of training_ratio, here."""
    steps = min(setting.steps, 5)
    where = "GPU" if setting.device == "cuda" else "CPU"
    return training_ratio.compare(where, {**setting.small, "steps": steps}, setting.runs)


def train_others(setting: Setting, folder: Path) -> list[Figure]:
    """Every other recipe that the table has with each of its losses, on its own kind of base and set."""
    return [figure for recipe, loss in other_recipes() for figure in train_recipe(recipe, loss, setting, folder)]


def other_recipes() -> list[tuple[str, str]]:
    """The table's recipes beside prism, and their losses: one row for each."""
    from training.recipes import table

    return [(recipe, loss) for recipe, losses in table.LOSSES.items() if recipe != "prism" for loss in losses]


def train_recipe(recipe: str, loss: str, setting: Setting, folder: Path) -> list[Figure]:
    """Some steps of one recipe, by the classes that `train` uses; nothing is published."""
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


def make_task(recipe: str, setting: Setting, folder: Path, given: dict[str, Any]) -> Any:
    """The task of a recipe on a base of its kind, with a set in its format."""
    from training.recipes import table
    from training.trainers.recipe import TrainingTask
    from training.trainers.training import import_named

    entry = table.RECIPES[recipe]
    base = make_base(entry.base, setting, folder)
    data = make_set(entry.format, setting, folder)
    options = table.recipe_options(recipe, {**own_options(recipe, setting.device), **given})
    return TrainingTask(recipe, base, base.name, import_named(entry.reader)(data), options, setting.device, False)


def own_options(recipe: str, device: str) -> dict[str, Any]:
    """What a recipe is asked for here: the preset tiny on a CPU, on a GPU the paper's with what ON_GPU changes."""
    if device == "cpu":
        return {"preset": "tiny", "evaluate_every": 10**6}
    return {"evaluate_every": 10**6, "epochs": 1000.0, **ON_GPU.get(recipe, {})}


def make_base(kind: str, setting: Setting, folder: Path) -> Path:
    """A base with random weights: the small causal shape, or an encoder of BERT's size."""
    if kind != "encoder":
        scene(folder / "small", setting.small, setting.steps)
        return folder / "small" / "base"
    from training.published.tiny_bases import tiny_encoder

    wide = {"hidden": 768, "layers": 12} if setting.device == "cuda" else {"hidden": 32, "layers": 2}
    made = folder / "encoder"
    return made if made.exists() else tiny_encoder(made, **wide, max_length=512)


def make_set(form: str, setting: Setting, folder: Path) -> Path:
    """A training set in the format of an export, without a dev split."""
    made = folder / f"set-{form}"
    if made.exists():
        return made
    if form == "erank-sft":
        from tests.training.trainers.scored import export_scores

        return export_scores(made, queries=8, dev=0)
    if form == "rtriever":
        from tests.training.recipes.test_bundles import row, write

        return write(made, [row(number) for number in range(40)])
    from tests.training_sets import write_set

    write_set(made, queries=20, documents=16)
    (made / "dev.jsonl").unlink()
    manifest = json.loads((made / "manifest.json").read_text())
    (made / "manifest.json").write_text(json.dumps({**manifest, "files": []}))
    return made


def kill_and_resume(setting: Setting, folder: Path) -> list[Figure]:
    """A training that is killed and resumed, against an undisturbed one: the largest difference of a loss."""
    data = make_set("prism", setting, folder)
    base = make_base("causal", setting, folder)
    whole, broken = (ask_job(folder / name, base, data, setting) for name in ("whole", "broken"))
    run_job(whole)
    child = start_job(broken)
    until_step(broken, setting.few // 2, child)
    child.send_signal(signal.SIGKILL)
    child.wait()
    run_job(broken)
    pairs = list(zip(losses_of(whole), losses_of(broken), strict=True))
    worst = max(abs(one - other) / abs(one) for one, other in pairs)
    return [
        {"case": "largest relative difference of a loss", "value": worst, "unit": "", "aim": 1e-6, "steps": len(pairs)}
    ]


def ask_job(
    path: Path, base: Path, data: Path, setting: Setting, subset: dict[str, Any] | None = None, **options: Any
) -> Path:
    """The folder of a training that `python -m training.trainer` works on."""
    from training.recipes.job_folder import JobFolder

    own = {"preset": "tiny", "max_steps": setting.few, "checkpoint_every": 2, **options}
    asked = {"kind": "train", "recipe": "prism", "data": str(data), "base": str(base), "out": str(path / "out")}
    JobFolder(path).write_request({**asked, "device": setting.device, "options": own, "subset": subset})
    return path


def start_job(path: Path) -> "subprocess.Popen[str]":
    """The trainer of a job, as a worker starts it."""
    command = [sys.executable, "-W", "ignore", "-m", "training.trainer", str(path)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_job(path: Path) -> str:
    """Do a job to its end; return what it printed. Raises RuntimeError when it fails."""
    child = start_job(path)
    said, _ = child.communicate()
    if child.returncode:
        raise RuntimeError((said.strip().splitlines() or ["it printed nothing"])[-1])
    return said


def losses_of(path: Path) -> list[float]:
    """The losses of a job, step by step; of a step that was done twice, the later."""
    from training.recipes.job_folder import JobFolder

    found = {line["step"]: float(line["loss"]) for line in JobFolder(path).read_metrics() if "loss" in line}
    return [found[step] for step in sorted(found)]


def until_step(path: Path, step: int, child: "subprocess.Popen[str]") -> None:
    """Wait until a job has done so many steps."""
    while len(losses_of(path)) < step and child.poll() is None:
        time.sleep(0.02)


def train_curve(setting: Setting, folder: Path) -> list[Figure]:
    """Two points of a learning curve, each from its part of the set to a published model."""
    from tests.training_sets import write_set

    data, base = write_set(folder / "set-curve", queries=20, documents=8), make_base("causal", setting, folder)
    found = []
    for asked in (64, 128):
        subset = {"order": "random", "seed": 0, "points": [64, 128], "asked": asked}
        path = ask_job(folder / f"curve-{asked}", base, data, setting, subset=subset)
        begun = time.perf_counter()
        run_job(path)
        seconds = round(time.perf_counter() - begun, 1)
        found.append({"case": f"{asked} labels", "value": seconds, "unit": "s", "steps": len(losses_of(path))})
    return found


def run_out_of_memory(setting: Setting, folder: Path) -> list[Figure]:
    """A budget far beyond the memory: on a GPU it is halved until it fits, and the training ends well."""
    data, base = make_set("prism", setting, folder), make_base("causal", setting, folder)
    huge: dict[str, Any] = {"token_budget": 10**7, "batch": 128, "max_steps": 2, "gradient_checkpointing": False}
    said = run_job(ask_job(folder / "huge", base, data, setting, **huge))
    halved = said.count("out of memory")
    needed = 1 if setting.device == "cuda" else 0
    return [{"case": "times that the budget was halved", "value": halved, "unit": "", "aim": f"{needed} and more"}]


def publish_and_compare(setting: Setting, folder: Path) -> list[Figure]:
    """Train a little, publish, and score the same pairs on the CPU in fp32 and on the device in every precision."""
    from tests.training_sets import write_set

    data = write_set(folder / "set-published", queries=10, documents=8)
    path = ask_job(folder / "published", make_base("causal", setting, folder), data, setting)
    begun = time.perf_counter()
    run_job(path)
    found = [{"case": "training and publishing", "value": round(time.perf_counter() - begun, 1), "unit": "s"}]
    requests = list(serving_requests(40, 10, 3))
    true = margins_of(path / "out", "cpu", "fp32", requests)
    for precision in ("fp32", "bf16") if setting.device == "cuda" else ("fp32",):
        given = margins_of(path / "out", setting.device, precision, requests)
        worst = max(abs(one - other) for one, other in zip(true, given, strict=True))
        case = f"largest difference of a margin, {setting.device} {precision}"
        found.append({"case": case, "value": worst, "unit": "", "pairs": len(true)})
    return found


def margins_of(folder: Path, device: str, precision: str, requests: Sequence[Any]) -> list[float]:
    """Raw margins of all pairs of some requests."""
    from training.published.opening import open_scorer

    scorer = open_scorer(folder, device, precision=precision)
    return [one.margin for answer in scorer.score(requests) for one in answer]


def serving_requests(tokens: int, documents: int, queries: int) -> Iterator[Any]:
    """Requests with documents of about so many tokens."""
    from training.published.protocol import ServingRequest

    words = ["key", "value", "mapping", "object", "class", "loop", "string", "name", "file", "error"]
    chance = random.Random(0)
    for number in range(queries):
        texts = [" ".join(chance.choice(words) for _ in range(tokens)) for _ in range(documents)]
        yield ServingRequest(query=f"what is a {words[number % len(words)]}", documents=texts)


def measure_scoring(setting: Setting, folder: Path) -> list[Figure]:
    """Pairs a second of the scorer behind `rerank` and the endpoint, 20 documents a query."""
    from training.published.opening import open_scorer

    published = folder / "published" / "out"
    if not published.exists():
        publish_and_compare(setting, folder)
    precision = "bf16" if setting.device == "cuda" else "fp32"
    scorer = open_scorer(published, setting.device, precision=precision)
    found = []
    for tokens in setting.documents:
        requests = list(serving_requests(tokens, 20, 10 if setting.device == "cuda" else 1))
        scorer.score(requests[:1])
        synchronise(setting.device)
        begun = time.perf_counter()
        scorer.score(requests)
        synchronise(setting.device)
        pairs = 20 * len(requests) / (time.perf_counter() - begun)
        found.append({"case": f"documents of {tokens} words, {precision}", "value": round(pairs, 1), "unit": "pairs/s"})
    return found
