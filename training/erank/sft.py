"""Recipe `erank-sft`: chain and score as one answer, learned by TRL's SFTTrainer (ERank 3.2 and appendix E).

Loss: cross-entropy of the answer's tokens, summed over a row and averaged over the step's rows
(`sft_reduction` sum), or averaged over the step's tokens (mean, LLaMA-Factory's default). The
prompt carries no loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from peft import get_peft_model
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from corpus.errors import BadInput
from judges.domain.chains import render_answer
from training.erank.chains import ChainPrompt, encode_chain_prompts
from training.erank.trained import ErankTrained
from training.jobs.folder import JobFolder
from training.recipes.data import Example
from training.recipes.erank_data import ScoredExample
from training.recipes.erank_prompt import ANSWER, TAIL, chain_prompt_sha256, chain_prompt_text
from training.recipes.rendering import END
from training.recipes.table import ChainOptions
from training.trainers.base import check_causal, check_end_token, load_model, load_tokenizer, measuring
from training.trainers.callback import JobCallback
from training.trainers.memory import check_memory
from training.trainers.prism import lora_config
from training.trainers.processes import is_leading
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import TokenRows, tokenize_rows
from training.trainers.tokens import encode_parted, part_controls, truncate_ids


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A row as tokens: prompt and answer; the answer begins at `start`."""

    ids: list[int]
    start: int
    whole: int  # Tokens before its document was cut.


class ErankSft:
    """`recipe.Recipe` of a causal base with a LoRA adapter. BadInput for what it cannot train."""

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, ChainOptions)
        self.task, options = task, task.options
        config = check_causal(task.base)
        self.tokenizer = load_tokenizer(task.base)
        check_end_token(self.tokenizer)
        self.prompt = ChainPrompt(options.max_prompt, options.max_response)
        self.row_lengths: dict[str, Any] = {}  # Until train has said them.
        examples = [one for one in task.data.train if isinstance(one, ScoredExample)]
        self.rows = self._tokenized(examples)
        self.dropped = len(examples) - len(self.rows)
        if not len(self.rows):
            raise BadInput(f"No answer of {len(examples):,} rows fits into max_length {options.max_length}: raise it")
        # TRL makes the logits in tiles.
        check_memory(task, config, min(max(self.rows.table["whole"]), options.max_length))
        base = load_model(task.base, task.device, task.dtype, options.attention)
        self.model: Any = get_peft_model(base, lora_config(base, options)) if options.lora_rank else base

    def _tokenized(self, examples: Sequence[ScoredExample]) -> TokenRows:
        """Return the rows whose answer fits, in the columns that TRL reads."""

        def make(number: int) -> dict[str, Any]:
            row = encode_chain(examples[number], self.tokenizer, self.task.options.max_length)
            ids, start, whole = (row.ids, row.start, row.whole) if row else ([0], 0, 0)
            # -100 is the label that torch's cross-entropy passes over: only the answer is learned.
            return {"input_ids": ids, "labels": [*[-100] * start, *ids[start:]], "start": start, "whole": whole}

        decides = (chain_prompt_sha256(), self.task.options.max_length)
        table = tokenize_rows(self.task, self.tokenizer, len(examples), make, *decides)
        kept = [number for number, start in enumerate(table["start"]) if start]
        return TokenRows(table.select(kept), lambda input_ids, labels, **rest: ChainRow(input_ids, **rest))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback, options = JobCallback(folder, self.task, asked_to_stop, self.dev_margins), self.task.options
        each, times = split_step(options.batch // max(1, options.processes), options.max_length, options.token_budget)
        args = callback.arguments(
            SFTConfig,
            rows=len(self.rows),
            per_device_train_batch_size=each,
            gradient_accumulation_steps=times,
            max_length=None,  # Rows are cut already, and only their documents.
            packing=False,
            dataset_kwargs={"skip_prepare_dataset": True},
            loss_type="nll",
        )
        trainer = ChainTrainer(
            model=self.model, args=args, train_dataset=self.rows.table.select_columns(["input_ids", "labels"]),
            processing_class=self.tokenizer, callbacks=[callback],
        )  # fmt: skip
        trainer.reduction = options.sft_reduction
        if is_leading():
            print(f"{len(self.rows):,} rows, {self.dropped:,} dropped", flush=True)  # noqa: T201
        self.row_lengths = callback.tell_lengths(self.rows.table["whole"], options.max_length)
        return callback.train(trainer)

    def dev_margins(self, rows: Sequence[Example]) -> list[float]:
        with measuring(self.model):
            return self.prompt.margins(self.model, self.tokenizer, rows)

    def trained(self, checkpoint: Path) -> ErankTrained:
        self.model = None
        adapter = checkpoint if self.task.options.lora_rank else None
        weights = self.task.base if adapter else checkpoint
        return ErankTrained(self.task.base, weights, adapter, self.prompt, device=self.task.device)

    def record(self) -> dict[str, Any]:
        dropped = {"rows_dropped": self.dropped}
        return describe_answers(self.prompt) | {"notes": dropped, "row_lengths": self.row_lengths}


def describe_answers(prompt: ChainPrompt) -> dict[str, Any]:
    """Return the fields of publication.Record that every model of kind `erank` has."""
    return {
        "kind": "erank",
        "prompt": chain_prompt_text(),
        "prompt_sha256": chain_prompt_sha256(),
        "answer": ANSWER,
        "max_prompt": prompt.max_prompt,
        "max_response": prompt.max_response,
    }


def encode_chain(one: ScoredExample, tokenizer: Any, max_length: int) -> ChainRow | None:
    """Return a row as tokens; the document gives way to the answer. None where the answer does not fit at all."""
    (chain,) = part_controls(tokenizer, [one.chain])
    (answer,) = encode_parted(tokenizer, [render_answer(chain, one.score) + END])
    room = max_length - len(answer)
    bare, whole = encode_chain_prompts(tokenizer, [replace(one, document=""), one])
    if len(bare) > room:
        return None
    prompt = truncate_ids(whole, tokenizer, room, TAIL)
    return ChainRow([*prompt, *answer], len(prompt), len(whole) + len(answer))


class ChainTrainer(SFTTrainer):
    """SFTTrainer whose loss may be the sum over a row's tokens, averaged over rows: it counts the step's rows."""

    reduction = "sum"

    def get_batch_samples(self, *given: Any, **named: Any) -> tuple[list[Any], Any]:
        samples, tokens = super().get_batch_samples(*given, **named)
        if self.reduction == "mean" or tokens is None:
            return samples, tokens
        # All processes' rows, as TRL divides by the number over all of them.
        rows = torch.tensor(sum(len(batch["input_ids"]) for batch in samples), device=self.args.device)
        return samples, self.accelerator.gather(rows).sum() if self.args.average_tokens_across_devices else rows


def split_step(rows: int, longest: int, budget: int) -> tuple[int, int]:
    """Return rows of a pass and passes of a step: what fits the budget and divides it."""
    most = max(1, budget // longest)
    each = next(size for size in range(min(most, rows), 0, -1) if rows % size == 0)
    return each, rows // each
