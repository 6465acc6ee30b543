"""Recipe `erank-sft`: chain and score learned as one answer, with TRL's SFTTrainer (ERank 3.2 and appendix E).

The loss is the cross-entropy of the answer's tokens, not the prompt's: with `sft_reduction` sum, summed over each row
and averaged over the rows of a step; with mean, averaged over the tokens of a step (LLaMA-Factory's default).
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
from training.erank.trained import ErankTrained
from training.published.base import check_causal, check_end_token, load_model, load_tokenizer, measuring
from training.published.chains import ChainPrompt, encode_chain_prompts
from training.published.tokens import encode_parted, part_controls, truncate_ids
from training.recipes.data import Example
from training.recipes.erank_data import ScoredExample
from training.recipes.erank_prompt import ANSWER, TAIL, chain_prompt_sha256, chain_prompt_text
from training.recipes.job_folder import JobFolder
from training.recipes.rendering import END
from training.recipes.table import ChainOptions
from training.trainers.callback import JobCallback
from training.trainers.memory import check_memory
from training.trainers.prism import lora_config
from training.trainers.processes import is_first_process
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import TokenRows, tokenize_rows


@dataclass(frozen=True, slots=True)
class ChainRow:
    """The tokens of a prompt and its answer, which begins at `start`."""

    ids: list[int]
    start: int
    whole: int  # The number of tokens before the document was cut.


class ErankSft:
    """A `recipe.Recipe` for a causal base, with a LoRA adapter or all weights.

    Raises BadInput for a base or set that it cannot train on.
    """

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, ChainOptions)
        self.task, options = task, task.options
        config = check_causal(task.base)
        self.tokenizer = load_tokenizer(task.base)
        check_end_token(self.tokenizer)
        self.prompt = ChainPrompt(options.max_prompt, options.max_response)
        self.row_lengths: dict[str, Any] = {}  # Set by train.
        examples = [example for example in task.data.train if isinstance(example, ScoredExample)]
        self.rows = self._tokenized(examples)
        self.dropped = len(examples) - len(self.rows)
        if not len(self.rows):
            raise BadInput(f"No answer of {len(examples):,} rows fits into max_length {options.max_length}: raise it")
        # TRL computes the logits in tiles, so their memory is not counted here.
        check_memory(task, config, min(max(self.rows.table["whole"]), options.max_length))
        base = load_model(task.base, task.device, task.dtype, options.attention)
        self.model: Any = get_peft_model(base, lora_config(base, options)) if options.lora_rank else base

    def _tokenized(self, examples: Sequence[ScoredExample]) -> TokenRows:
        """Return the rows whose answer fits into max_length, in the columns that TRL reads."""

        def make(number: int) -> dict[str, Any]:
            row = encode_chain(examples[number], self.tokenizer, self.task.options.max_length)
            ids, start, whole = (row.ids, row.start, row.whole) if row else ([0], 0, 0)
            # Torch's cross-entropy ignores the label -100: only the answer is learned.
            return {"input_ids": ids, "labels": [*[-100] * start, *ids[start:]], "start": start, "whole": whole}

        cache_key = (chain_prompt_sha256(), self.task.options.max_length)
        table = tokenize_rows(self.task, self.tokenizer, len(examples), make, *cache_key)
        fitting_rows = [number for number, start in enumerate(table["start"]) if start]
        return TokenRows(table.select(fitting_rows), lambda input_ids, labels, **rest: ChainRow(input_ids, **rest))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback, options = JobCallback(folder, self.task, asked_to_stop, self.dev_margins), self.task.options
        process_rows = options.batch // max(1, options.processes)
        pass_rows, passes = split_step(process_rows, options.max_length, options.token_budget)
        args = callback.arguments(
            SFTConfig,
            rows=len(self.rows),
            per_device_train_batch_size=pass_rows,
            gradient_accumulation_steps=passes,
            max_length=None,  # The rows are cut already, at the end of their documents.
            packing=False,
            dataset_kwargs={"skip_prepare_dataset": True},
            loss_type="nll",
        )
        trainer = ChainTrainer(
            model=self.model, args=args, train_dataset=self.rows.table.select_columns(["input_ids", "labels"]),
            processing_class=self.tokenizer, callbacks=[callback],
        )  # fmt: skip
        trainer.reduction = options.sft_reduction
        if is_first_process():
            print(f"{len(self.rows):,} rows, {self.dropped:,} dropped", flush=True)  # noqa: T201
        self.row_lengths = callback.report_lengths(self.rows.table["whole"], options.max_length)
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
    """Return the fields of publication.Record that all models of the kind `erank` share."""
    return {
        "kind": "erank",
        "prompt": chain_prompt_text(),
        "prompt_sha256": chain_prompt_sha256(),
        "answer": ANSWER,
        "max_prompt": prompt.max_prompt,
        "max_response": prompt.max_response,
    }


def encode_chain(example: ScoredExample, tokenizer: Any, max_length: int) -> ChainRow | None:
    """Return the tokens of an example, its document cut to make room for the answer.

    None if the answer does not fit even without the document.
    """
    (chain,) = part_controls(tokenizer, [example.chain])
    (answer,) = encode_parted(tokenizer, [render_answer(chain, example.score) + END])
    max_prompt = max_length - len(answer)
    bare_prompt, full_prompt = encode_chain_prompts(tokenizer, [replace(example, document=""), example])
    if len(bare_prompt) > max_prompt:
        return None
    prompt = truncate_ids(full_prompt, tokenizer, max_prompt, TAIL)
    return ChainRow([*prompt, *answer], len(prompt), len(full_prompt) + len(answer))


class ChainTrainer(SFTTrainer):
    """An SFTTrainer whose loss may also be summed over each row's tokens and averaged over the step's rows."""

    reduction = "sum"

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        """Return the samples of a step and the number that its loss is divided by: tokens, or rows."""
        samples, tokens = super().get_batch_samples(*args, **kwargs)
        if self.reduction == "mean" or tokens is None:
            return samples, tokens
        # The rows of all processes, since TRL divides by the number over all of them.
        rows = torch.tensor(sum(len(batch["input_ids"]) for batch in samples), device=self.args.device)
        return samples, self.accelerator.gather(rows).sum() if self.args.average_tokens_across_devices else rows


def split_step(rows: int, longest: int, budget: int) -> tuple[int, int]:
    """Return the rows of a pass and the passes of a step: the largest divisor of `rows` within the token budget."""
    most = max(1, budget // longest)
    pass_rows = next(size for size in range(min(most, rows), 0, -1) if rows % size == 0)
    return pass_rows, rows // pass_rows
