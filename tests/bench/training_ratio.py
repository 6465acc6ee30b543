"""training_ratio: tokens/s and peak memory of the prism recipe over a plain trainer of full logits, same device.

CPU: Qwen3's shape, hidden 256, 4 layers, vocabulary 151,936, rows of up to 512 tokens, fp32, LoRA. Both sides train the
same rows with the same loss, adapter and optimiser, each in a process of its own; memory is what a side adds to its
loaded model. With a GPU: 0.6B's shape at 4,096 in bf16, and the share of the GPU's own measured bf16 matrix rate.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS, BATCH = 4, 8
CPU = {"hidden": 256, "layers": 4, "length": 512, "intermediate": 768, "heads": 4, "device": "cpu"}
GPU = {"hidden": 1024, "layers": 28, "length": 4096, "intermediate": 3072, "heads": 16, "device": "cuda"}
VOCABULARY = 151_936


def measure() -> list[dict[str, Any]]:
    """Speed and memory, and on a machine with a GPU its figures too."""
    import torch

    figures = compare("CPU", CPU)
    if torch.cuda.is_available():
        figures += compare("GPU", GPU)
    return figures


def compare(words: str, shape: dict[str, Any]) -> list[dict[str, Any]]:
    """Each side in its own process, on the same base and rows."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), shape)
        found = {side: run(side, Path(folder), shape) for side in ("ours", "plain")}
    ours, plain = found["ours"], found["plain"]
    case = f"{words}, hidden {shape['hidden']}, {shape['layers']} layers, vocabulary 151,936, length {shape['length']}"
    speed = {
        "name": "training_ratio",
        "case": f"tokens/s, {case}",
        "value": round(ours["tokens_per_s"] / plain["tokens_per_s"], 2),
        "unit": "x",
        "aim": 1.5,
        "tokens_per_s": ours["tokens_per_s"],
        "plain_tokens_per_s": plain["tokens_per_s"],
        "losses_differ_by": float(f"{abs(ours['loss'] - plain['loss']) / plain['loss']:.1e}"),
    }
    if "share" in ours:
        speed["share_of_matrix_rate"] = ours["share"]
    memory = {
        "name": "training_ratio",
        "case": f"peak memory, {case}",
        "value": round(ours["memory_mb"] / plain["memory_mb"], 2),
        "unit": "x",
        "aim": 0.5,
        "memory_mb": ours["memory_mb"],
        "plain_memory_mb": plain["memory_mb"],
    }
    return [speed, memory]


def run(side: str, folder: Path, shape: dict[str, Any]) -> dict[str, Any]:
    """One side, in a process whose memory is its own."""
    code = "import sys, json; from tests.bench.training_ratio import train; print(json.dumps(train(*sys.argv[1:])))"
    args = [sys.executable, "-W", "ignore", "-c", code, side, str(folder), json.dumps(shape)]
    done = subprocess.run(args, capture_output=True, text=True, check=True, timeout=600)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def make(folder: Path, shape: dict[str, Any]) -> None:
    """A base of the shape with random weights, and rows from a quarter of the length up to all of it."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    from tests.training_sets import write_set
    from training.trainers.base import load_tokenizer
    from training.trainers.tiny_bases import tiny_base

    tokenizer = load_tokenizer(tiny_base(folder / "tokens"))
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=shape["hidden"],
        intermediate_size=shape["intermediate"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["heads"] // 2,
        head_dim=shape["hidden"] // shape["heads"],
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    chance = random.Random(0)
    rows = write_set(folder / "set", queries=10, documents=BATCH * STEPS // 8 + 2)
    lines = [json.loads(line) for line in (rows / "train.jsonl").read_text().splitlines()]
    for line in lines:
        line["document"] = "the key of a mapping is hashable and " * chance.randint(1, shape["length"] // 9)
    (rows / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[: BATCH * STEPS]))
    manifest = json.loads((rows / "manifest.json").read_text())
    (rows / "manifest.json").write_text(json.dumps({**manifest, "files": []}))


def train(side: str, folder: str, shape: str) -> dict[str, Any]:
    """All steps of one side: tokens/s, peak memory over the loaded model, and the loss of the first step."""
    import torch

    from training.jobs.folder import JobFolder
    from training.recipes import data, table
    from training.trainers.loop import Loop
    from training.trainers.prism import PrismRecipe
    from training.trainers.recipe import TrainingTask
    from training.trainers.world import World

    wanted = json.loads(shape)
    given = {"max_length": wanted["length"], "token_budget": wanted["length"], "batch": BATCH, "lora_rank": 16}
    given["learning_rate"] = 1e-12  # both sides see the same weights, so that their losses can be compared
    options = table.recipe_options("prism", given)
    found = data.read_training_set(Path(folder) / "set")
    task = TrainingTask("prism", Path(folder) / "base", "base", found, options, wanted["device"], False)
    recipe = PrismRecipe(task)
    loop = Loop(JobFolder(Path(folder) / side), task, recipe, World(), lambda: False)
    (Path(folder) / side).mkdir()
    before, tokens, losses = memory(wanted["device"]), 0, []
    begun = time.perf_counter()
    for step in range(STEPS):
        rows = loop.epochs.step(step) if side == "ours" else list(range(step * BATCH, (step + 1) * BATCH))
        rows = [row for row in rows if row < len(recipe.rows)]
        if side == "ours":
            parts = loop.gradients(rows)
            losses.append(sum(weight * parts[name] for name, weight in recipe.weights.items()) * len(rows))
        else:
            losses.append(plain(recipe, rows) * len(rows))
        loop.optimizer.step()
        loop.optimizer.zero_grad(set_to_none=True)
        tokens += sum(len(recipe.rows[row].ids) for row in rows)
    if wanted["device"] == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    result = {
        "tokens_per_s": round(tokens / seconds, 1),
        "memory_mb": round((memory(wanted["device"]) - before) / 2**20, 1),
        "loss": sum(losses) / sum(len(loop.epochs.step(step)) for step in range(STEPS)),
    }
    if wanted["device"] == "cuda":
        weights = sum(value.numel() for value in recipe.model.parameters())
        result["share"] = round(6 * weights * tokens / seconds / matrix_rate(), 3)
    return result


def plain(recipe: Any, rows: list[int]) -> float:
    """What one writes first: rows in their order, padded, all logits, one backward."""
    import torch
    from torch.nn import functional

    chosen = [recipe.rows[row] for row in rows]
    device = next(recipe.model.parameters()).device
    longest = max(len(row.ids) for row in chosen)
    ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in chosen], device=device)
    mask = torch.tensor([[1] * len(row.ids) + [0] * (longest - len(row.ids)) for row in chosen], device=device)
    labels = torch.full_like(ids, -100)
    for place, row in enumerate(chosen):
        labels[place, row.start : len(row.ids)] = ids[place, row.start : len(row.ids)]
    with torch.autocast(device.type, torch.bfloat16, enabled=recipe.task.precision == "bf16"):
        logits = recipe.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    logits = logits.float()
    text = functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1), reduction="sum"
    )
    places = torch.tensor([row.start - 1 for row in chosen], device=device)
    first = logits[torch.arange(len(chosen), device=device), places]
    margins = first[:, recipe.yes_id] - first[:, recipe.no_id]
    teacher = torch.tensor([row.teacher for row in chosen], device=device)
    loss = (20.0 * ((torch.sigmoid(margins) - teacher) ** 2).sum() + text) / len(chosen)
    loss.backward()
    return float(loss.detach())


def memory(device: str) -> float:
    """Bytes at the highest so far."""
    import torch

    if device == "cuda":
        return float(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def matrix_rate() -> float:
    """Operations a second of a large bf16 product on this GPU."""
    import torch

    left = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(3):
        left @ left
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(20):
        left @ left
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - began)


os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
