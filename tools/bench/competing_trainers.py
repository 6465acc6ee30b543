"""Time and memory of a training with the recipe `prism`, and with the programs that a user would otherwise write.

- `ours`: the recipe prism, as `train prism` runs it, up to publishing.
- `sft`: TRL's SFTTrainer with its defaults, and the point loss in addition (the margin from the last hidden state).
- `trainer`: transformers' Trainer with our loss, logits at the last positions only (`logits_to_keep`), left padding.

All train the same base on the same rows with the same adapter, optimiser, device and precision, and with the same
maximum of padded tokens in a forward pass. Each side runs in a separate process, to measure its peak memory.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

VOCABULARY = 151_936
RANK = 16
# So small that all sides have the same weights in every step.
RATE = 1e-12
SIDES = ("ours", "sft", "trainer")


def write_scene(folder: Path, shape: dict[str, Any]) -> None:
    """Write a base of Qwen3's architecture with random weights, a training set, and its rows as tokens.

    The lengths of documents are log-normal, like those of passages, with some documents at the limit.
    """
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    from tests.training_sets import write_set
    from training.published.base import load_tokenizer
    from training.published.tiny_bases import tiny_base
    from training.recipes import rendering

    tokenizer = load_tokenizer(tiny_base(folder / "tokens"))
    config = Qwen3Config(
        vocab_size=shape.get("vocabulary", VOCABULARY),
        hidden_size=shape["hidden"],
        intermediate_size=shape["intermediate"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape.get("kv", shape["heads"] // 2),
        head_dim=shape.get("head", shape["hidden"] // shape["heads"]),
        max_position_embeddings=shape["length"] + 8,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    with torch.device(shape["device"]):
        base: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    base.to("cpu", torch.bfloat16 if shape["device"] == "cuda" else torch.float32).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    rows, generator = shape["batch"] * shape["steps"], random.Random(0)
    data = write_set(folder / "set", queries=10, documents=rows // 8 + 2)
    lines = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()][:rows]
    # The length of a row without its document, with 40 tokens for the answer.
    bare = len(tokenizer(rendering.QUORUM.render(lines[0]["query"], ""))["input_ids"]) + 40
    tokens = []
    for line in lines:
        length = generator.lognormvariate(0.0, 0.8) * (shape["length"] - bare) / 4
        text = "the key of a mapping is hashable and " * (int(length) // 8 + 1)
        line["document"] = tokenizer.decode(tokenizer(text)["input_ids"][: shape["length"] - bare])
        prompt = rendering.QUORUM.render(line["query"], line["document"], line["instruction"])
        target = rendering.render_target(int(line["annotated_label"] == "yes"), line["contribution_evidence"])
        ids, answer = tokenizer(prompt)["input_ids"], tokenizer(target, add_special_tokens=False)["input_ids"]
        tokens.append({"ids": ids + answer, "start": len(ids), "teacher": line["revised_score"]})
    (data / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (data / "dev.jsonl").unlink()
    manifest = json.loads((data / "manifest.json").read_text())
    (data / "manifest.json").write_text(json.dumps({**manifest, "files": []}))
    (folder / "rows.json").write_text(json.dumps(tokens))


def run_side(side: str, folder: Path, shape: dict[str, Any], limit_s: float = 600) -> dict[str, Any]:
    """Train one side in a separate process, and return its "tokens_per_s", "peak_mb", "seconds" and "loss"."""
    args = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tools.bench.competing_trainers",
        side,
        str(folder),
        json.dumps(shape),
    ]
    process = subprocess.run(args, capture_output=True, text=True, timeout=limit_s, check=False)
    if process.returncode:
        raise RuntimeError(f"{side}: {process.stderr.strip().splitlines()[-1:]}")
    figures: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return figures


def train_side(side: str, folder: Path, shape: dict[str, Any]) -> dict[str, Any]:
    """Train all rows once with one side, in this process."""
    tokens = sum(len(row["ids"]) for row in load_rows(folder))
    seconds, loss = {"ours": train_prism, "sft": train_with_sft, "trainer": train_with_trainer}[side](folder, shape)
    return {
        "tokens_per_s": round(tokens / seconds, 1),
        "peak_mb": round(peak_memory(shape["device"]) / 2**20, 1),
        "seconds": round(seconds, 2),
        "loss": loss,
    }


def load_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows as tokens."""
    rows: list[dict[str, Any]] = json.loads((folder / "rows.json").read_text())
    return rows


def train_prism(folder: Path, shape: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of all steps of the recipe prism, and the mean loss."""
    lines = prism_lines(folder, shape)
    return float(lines[-1]["seconds"]), mean_loss(lines)


def prism_lines(folder: Path, shape: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics of each step of the recipe prism."""
    from tempfile import mkdtemp

    from training.recipes import data, table
    from training.recipes.job_folder import JobFolder
    from training.trainers.recipe import TrainingTask
    from training.trainers.training import open_recipe

    option_values = {
        "epochs": 1.0, "batch": shape["batch"], "max_length": shape["length"], "token_budget": shape["budget"],
        "lora_rank": RANK, "lora_alpha": 2 * RANK, "learning_rate": RATE, "sft_reduction": "sum",
    }  # fmt: skip
    job = JobFolder(Path(mkdtemp(dir=folder)))
    training_set = data.read_training_set(folder / "set")
    options = table.recipe_options("prism", option_values)
    task = TrainingTask("prism", folder / "base", "base", training_set, options, shape["device"], False)
    open_recipe(task).train(job, lambda: False)
    return [line for line in job.read_metrics() if "loss" in line]


def adapter() -> Any:
    """Return the adapter of all sides, for every linear layer."""
    from peft import LoraConfig

    return LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM")


def arguments(folder: Path, shape: dict[str, Any]) -> dict[str, Any]:
    """Return the training arguments for both libraries; all others have their defaults."""
    passes = max(1, shape["budget"] // shape["length"])
    return {
        "output_dir": str(folder / "theirs"),
        "per_device_train_batch_size": passes,
        "gradient_accumulation_steps": max(1, shape["batch"] // passes),
        "num_train_epochs": 1,
        "learning_rate": RATE,
        "bf16": shape["device"] == "cuda",
        "use_cpu": shape["device"] == "cpu",
        "save_strategy": "no",
        "report_to": [],
        "logging_steps": 1,
        "disable_tqdm": True,
        "remove_unused_columns": False,
    }


def stopwatch() -> Any:
    """Return a callback that measures the time from the start of the first step to the end of the last."""
    from transformers import TrainerCallback

    class Stopwatch(TrainerCallback):
        started_at = ended_at = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.started_at = self.started_at or time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            import torch

            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.ended_at = time.perf_counter()

    return Stopwatch()


def point_term(hidden: Any, head: Any, starts: Any, teacher: Any, words: tuple[int, int]) -> Any:
    """Return 20 x (sigmoid(l_yes - l_no) - teacher)^2; `hidden`: the last states (rows, tokens, size)."""
    import torch

    states = hidden[torch.arange(len(starts), device=hidden.device), starts - 1].float()
    margins = states @ (head[words[0]] - head[words[1]]).float()
    return 20.0 * ((torch.sigmoid(margins) - teacher) ** 2).mean()


def answer_words(folder: Path) -> tuple[int, int]:
    from training.published.base import answer_ids, load_tokenizer

    return answer_ids(load_tokenizer(folder / "base"))


def train_with_sft(folder: Path, shape: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds and mean loss of TRL's SFTTrainer, whose cross-entropy is a mean over tokens."""
    import torch
    from datasets import Dataset  # type: ignore[import-untyped]
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    class PointSFTTrainer(SFTTrainer):
        words: tuple[int, int]
        hidden: Any = None

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            teacher, labels = inputs.pop("teacher"), inputs["labels"]
            loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)  # type: ignore[no-untyped-call]
            head = model.get_base_model().lm_head.weight
            starts = (labels != -100).int().argmax(dim=1)
            loss = loss + point_term(self.hidden, head, starts, teacher, self.words) / accumulation
            return (loss, outputs) if return_outputs else loss

    training_arguments = arguments(folder, shape)
    accumulation = training_arguments["gradient_accumulation_steps"]
    rows = [
        {
            "input_ids": row["ids"],
            "completion_mask": [0] * row["start"] + [1] * (len(row["ids"]) - row["start"]),
            "teacher": row["teacher"],
        }
        for row in load_rows(folder)
    ]
    watch = stopwatch()
    trainer = PointSFTTrainer(
        model=load_base(folder, shape),
        args=SFTConfig(**training_arguments, max_length=shape["length"]),
        train_dataset=Dataset.from_list(rows),
        processing_class=load_words(folder),
        peft_config=adapter(),
        callbacks=[watch],
    )
    trainer.words = answer_words(folder)
    collate = trainer.data_collator

    def with_teacher(batch: Sequence[dict[str, Any]]) -> Any:
        columns = collate([{key: value for key, value in row.items() if key != "teacher"} for row in batch])
        return {**columns, "teacher": torch.tensor([row["teacher"] for row in batch])}

    def store_states(_module: Any, _inputs: Any, output: Any) -> None:
        trainer.hidden = output

    trainer.data_collator = with_teacher
    model: Any = trainer.model
    model.get_base_model().model.norm.register_forward_hook(store_states)
    trainer.train()
    return watch.ended_at - watch.started_at, mean_loss(trainer.state.log_history)


def train_with_trainer(folder: Path, shape: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds and mean loss of transformers' Trainer with our loss, summed over a row's tokens."""
    import torch
    from peft import get_peft_model
    from torch.nn import functional
    from transformers import Trainer, TrainingArguments

    yes, no = answer_words(folder)

    def collate(batch: Sequence[dict[str, Any]]) -> dict[str, Any]:
        longest = max(len(row["ids"]) for row in batch)
        # Padded on the left, so that all answers end at the last position.
        pads = [longest - len(row["ids"]) for row in batch]
        return {
            "input_ids": torch.tensor([[0] * pad + row["ids"] for pad, row in zip(pads, batch, strict=True)]),
            "attention_mask": torch.tensor(
                [[0] * pad + [1] * len(row["ids"]) for pad, row in zip(pads, batch, strict=True)]
            ),
            "answers": torch.tensor([len(row["ids"]) - row["start"] for row in batch]),
            "teacher": torch.tensor([row["teacher"] for row in batch]),
        }

    class PointTrainer(Trainer):
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            answers, teacher = inputs.pop("answers"), inputs.pop("teacher")
            positions = int(answers.max()) + 1
            outputs = model(**inputs, logits_to_keep=positions, use_cache=False)
            logits = outputs.logits.float()
            labels = inputs["input_ids"][:, -positions:].clone()
            labels[torch.arange(positions, device=labels.device)[None, :] < positions - answers[:, None]] = -100
            text = functional.cross_entropy(
                logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1), reduction="sum"
            ) / len(answers)
            first = logits[torch.arange(len(answers), device=logits.device), positions - 1 - answers]
            point = 20.0 * ((torch.sigmoid(first[:, yes] - first[:, no]) - teacher) ** 2).mean()
            loss = text + point  # Trainer divides it by the passes of a step.
            return (loss, outputs) if return_outputs else loss

    watch = stopwatch()
    trainer = PointTrainer(
        model=get_peft_model(load_base(folder, shape), adapter()),
        args=TrainingArguments(**arguments(folder, shape)),
        train_dataset=load_rows(folder),
        data_collator=collate,
        callbacks=[watch],
    )
    trainer.train()
    return watch.ended_at - watch.started_at, mean_loss(trainer.state.log_history)


def mean_loss(lines: Sequence[dict[str, Any]]) -> float:
    """Return the mean loss of all steps, which does not depend on the order of rows since the weights do not change."""
    return mean(float(line["loss"]) for line in lines if "loss" in line)


def load_base(folder: Path, shape: dict[str, Any]) -> Any:
    """Load the base as a user would, in bf16 on a GPU."""
    import torch
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if shape["device"] == "cuda" else torch.float32
    return AutoModelForCausalLM.from_pretrained(folder / "base", dtype=dtype)


def load_words(folder: Path) -> Any:
    from training.published.base import load_tokenizer

    return load_tokenizer(folder / "base")


def peak_memory(device: str) -> float:
    """Return the peak memory in bytes of the GPU, or of this process (getrusage would include its parent's)."""
    import torch

    if device == "cuda":
        return float(torch.cuda.max_memory_allocated())
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024


os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

if __name__ == "__main__":
    print(json.dumps(train_side(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))))
