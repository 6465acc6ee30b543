"""Recipe `erank-grpo`: rewards from the ranks of all rollouts of a query, with TRL's GRPOTrainer (ERank 3.3, table 9).

A round samples G answers to each document of some whole queries, rewards them, and takes one or more optimiser steps
on them. Policy and reference both start as the base, which is a model of `erank-sft`.
"""

import json
import os
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

import torch
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from corpus.errors import BadInput
from judges.domain.chains import parse_answer
from training.erank.sft import describe_answers, split_step
from training.erank.trained import ErankTrained
from training.published.base import check_causal, check_end_token, load_tokenizer, measuring
from training.published.causal import load_causal
from training.published.chains import ChainPrompt, answer_text, encode_chain_prompts
from training.published.margins import write_answers
from training.published.tokens import EncodedRow, truncate_ids
from training.recipes.data import Example
from training.recipes.erank_data import ScoredExample, group_by_query
from training.recipes.erank_prompt import TAIL, chain_prompt_sha256
from training.recipes.erank_rewards import Rollout, normalize_rewards, rank_scores, reward_rollouts
from training.recipes.job_folder import JobFolder, read_lines, write_atomically
from training.recipes.table import GrpoOptions
from training.trainers.callback import JobCallback
from training.trainers.memory import check_memory
from training.trainers.processes import gather_values, group_position, is_first_process, wait_for_all_processes
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import TokenRows, list_lengths, tokenize_rows


class ErankGrpo:
    """A `recipe.Recipe` for a model of `erank-sft`. Raises BadInput for a base or set that it cannot train on."""

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, GrpoOptions)
        self.task, self.options = task, task.options
        config = check_causal(task.base)
        queries, self.left_out = group_by_query(task.data.train)
        if not queries:
            raise BadInput("No query of the set has two documents or more and a relevant one: nothing can be ranked")
        self.tokenizer = load_tokenizer(task.base)
        check_end_token(self.tokenizer)
        self.prompt = ChainPrompt(self.options.max_prompt, self.options.max_response)
        self.row_lengths: dict[str, Any] = {}  # Set by train.
        self.rounds = plan_rounds({query: len(rows) for query, rows in queries.items()}, self.options)
        self.rows: list[ScoredExample] = [row for rows in queries.values() for row in rows]  # type: ignore[misc]
        # A query's rows are contiguous, so a range of indices identifies them.
        self.row_ranges: dict[str, range] = {}
        begin = 0
        for query, rows in queries.items():
            self.row_ranges[query] = range(begin, begin + len(rows))
            begin += len(rows)
        self.encoded = self._tokenized()
        longest = max(list_lengths(self.encoded.table, "ids")) + self.options.max_response
        check_memory(task, config, longest, copies=int(self.options.kl_weight > 0))
        # Weights are in fp32 on every device, since updates of 1e-6 vanish in bf16; the passes may be bf16.
        self.model = load_causal(task.base, task.device, attention=self.options.attention)

    def _tokenized(self) -> TokenRows:
        """Return the prompts; the column `whole` is the number of tokens before the document was cut."""

        def make(number: int) -> dict[str, Any]:
            (ids,) = encode_chain_prompts(self.tokenizer, [self.rows[number]])
            return {"ids": truncate_ids(ids, self.tokenizer, self.options.max_prompt, TAIL), "whole": len(ids)}

        cache_key = (chain_prompt_sha256(), self.options.max_prompt)
        table = tokenize_rows(self.task, self.tokenizer, len(self.rows), make, *cache_key)
        return TokenRows(table, lambda ids, whole: EncodedRow(ids, len(ids) < whole))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback = RoundCallback(folder, self.task, asked_to_stop, self.dev_margins)
        references = self.reference_scores(folder)
        trainer = self.make_trainer(folder, callback, references)
        callback.round_steps = self.options.batch // self.options.mini_batch
        if is_first_process():
            queries, documents = len(self.row_ranges), len(self.rows)
            print(f"{queries:,} queries, {documents:,} documents; {self.left_out:,} queries left out")  # noqa: T201
            print(describe_plan(self.options, self.rounds), flush=True)  # noqa: T201
            truncate_rollouts(folder.path / "rollouts.jsonl", (folder.checkpoint_steps() or [0])[-1])
        self.row_lengths = callback.report_lengths(self.encoded.table["whole"], self.options.max_prompt)
        return callback.train(trainer)

    def reference_scores(self, folder: JobFolder) -> list[float | None]:
        """Return the reference score t of every row: the teacher's for r_SE, else the base's own greedy score.

        The base's scores are stored in the job's references.jsonl, so a resumed job reads them.
        """
        if self.options.reward == "se":
            return [float(row.score) for row in self.rows]
        path = folder.path / "references.jsonl"
        # One process that sees the file is enough: a shared disk may show it to others a moment later.
        if not any(gather_values(path.exists())):
            if is_first_process():
                folder.update_state(phase="scoring the documents with the reference model")
            # Each process scores its share of the documents, and the first one writes the scores of all.
            rank, size = group_position()
            answers = self.prompt.write_scores(self.model.eval(), self.tokenizer, self.rows[rank::size])
            shares = gather_values([answer.score for answer in answers])
            if is_first_process():
                lines = [
                    {"query_id": row.query_id, "doc_id": row.doc_id, "score": shares[index % size][index // size]}
                    for index, row in enumerate(self.rows)
                ]
                write_atomically(path, "".join(json.dumps(line) + "\n" for line in lines))
        wait_for_all_processes()
        by_document = {(line["query_id"], line["doc_id"]): line["score"] for line in read_lines(path)}
        # The teacher's score replaces a malformed answer of the reference, which is no target to stay close to.
        scores = [by_document[row.query_id, row.doc_id] for row in self.rows]
        return [float(row.score if score is None else score) for row, score in zip(self.rows, scores, strict=True)]

    def make_trainer(self, folder: JobFolder, callback: JobCallback, references: Sequence[float | None]) -> Any:
        from datasets import Dataset  # type: ignore[import-untyped]

        options = self.options
        order = self.rounds.order(self.row_ranges)
        processes = max(1, options.processes)
        pass_rows, passes = split_step(
            options.mini_batch * options.group // processes, options.max_prompt + options.max_response,
            options.token_budget,
        )  # fmt: skip
        rounds = len(order) // options.batch
        args = callback.arguments(
            GRPOConfig,
            rows=len(order),
            max_steps=min(rounds, self.rounds.most) * (options.batch // options.mini_batch),
            per_device_train_batch_size=pass_rows,
            gradient_accumulation_steps=passes,
            generation_batch_size=options.batch * options.group,
            num_generations=options.group,
            max_completion_length=options.max_response,
            temperature=options.temperature,
            top_k=0,
            top_p=1.0,
            beta=options.kl_weight,
            epsilon=options.clip_ratio,
            num_iterations=1,
            # TRL's defaults for the following would not train with the loss of the paper's table 9.
            loss_type="grpo" if options.grpo_reduction == "rollout" else "dapo",
            scale_rewards="none",  # We compute the advantages: divided by the SD plus 1e-6, exactly 0 where it is 0.
            use_bias_correction_kl=False,
            shuffle_dataset=False,  # The rows of a round are contiguous, and so are a query's within it.
            disable_dropout=True,
            remove_unused_columns=False,
        )
        # No warning about rollout_func, an experimental argument of the pinned version.
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
        trainers: list[RankingTrainer] = []
        reward = update_wrapper(partial(reward_answers, self, references, trainers), reward_answers)
        trainer = RankingTrainer(
            model=self.model,
            args=args,
            train_dataset=Dataset.from_dict({"prompt": [str(row) for row in order]}),
            processing_class=self.tokenizer,
            reward_funcs=reward,
            rollout_func=self.sample,
            callbacks=[callback],
        )
        trainer.recipe, trainer.folder, trainer.callback = self, folder, callback
        trainers.append(trainer)
        # The reference model only scores, so bf16 is exact enough, in half the memory.
        if trainer.ref_model is not None and self.task.precision == "bf16":
            torch.nn.Module.to(trainer.ref_model, torch.bfloat16)
        return trainer

    def sample(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        """Return rollouts for TRL, the same ones whenever a step is repeated. A prompt is the index of a row."""
        # An index -1 - row is padding: its row is sampled and gets no reward.
        rows = [self.encoded[max(index, -1 - index)] for index in map(int, prompts)]
        model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
        devices = [trainer.accelerator.device] if self.task.device == "cuda" else []
        model.eval()
        # A separate generator, since sampling must not advance the one that the trainer resumes with.
        with torch.random.fork_rng(devices=devices), trainer.accelerator.autocast():
            torch.manual_seed(
                sampling_seed(self.options.seed, trainer.state.global_step, trainer.accelerator.process_index)
            )
            answers = write_answers(
                model, self.tokenizer, rows, self.options.max_response, temperature=self.options.temperature
            )
        model.train()
        return {"prompt_ids": [row.ids for row in rows], "completion_ids": answers, "logprobs": None}

    def dev_margins(self, rows: Sequence[Example]) -> list[float]:
        with measuring(self.model):
            return self.prompt.margins(self.model, self.tokenizer, rows)

    def trained(self, checkpoint: Path) -> ErankTrained:
        self.model = None
        return ErankTrained(self.task.base, checkpoint, None, self.prompt, device=self.task.device)

    def record(self) -> dict[str, Any]:
        left_out = {"queries_left_out": self.left_out}
        return describe_answers(self.prompt) | {"notes": left_out, "row_lengths": self.row_lengths}


def sampling_seed(seed: int, step: int, process: int) -> int:
    """Return the seed of a round's rollouts, different for every round and process."""
    return random.Random(f"{seed} {step} {process}").getrandbits(31)


@dataclass(frozen=True)
class Rounds:
    """The queries of each round in every epoch. A round has one share for each process, padded to equal size."""

    shares: Sequence[Sequence[Sequence[str]]]  # By epoch and share, the shares of one round after the other: queries.
    share_size: int  # Documents.
    processes: int
    most: int  # Maximum number of rounds.

    @property
    def per_epoch(self) -> int:
        """The number of rounds in the first epoch."""
        return len(self.shares[0]) // self.processes

    def order(self, row_ranges: Mapping[str, range]) -> list[int]:
        """Return the indices of the rows of all rounds in order; an index -1 - row is padding."""
        order: list[int] = []
        for epoch_shares in self.shares:
            for queries in epoch_shares:
                rows = [row for query in queries for row in row_ranges[query]]
                last = rows[-1] if rows else 0
                order += [*rows, *[-1 - last] * (self.share_size - len(rows))]
        return order


def plan_rounds(sizes: Mapping[str, int], options: GrpoOptions) -> Rounds:
    """Plan rounds of whole queries in a seeded order that differs in each epoch.

    `sizes`: documents of each query. Raises BadInput for a query that does not fit into a process's share.
    """
    processes = max(1, options.processes)
    share_size = options.batch // processes
    largest = max(sizes, key=lambda query: sizes[query])
    if sizes[largest] > share_size:
        raise BadInput(
            f"Query {largest!r} has {sizes[largest]:,} documents and a process takes {share_size:,} at once: "
            "raise batch"
        )
    epochs = []
    for epoch in range(max(1, round(options.epochs))):
        # Sorted before shuffling, so that the order depends on nothing but the seed.
        order = sorted(sizes)
        random.Random(f"{options.seed} {epoch}").shuffle(order)
        shares: list[list[str]] = []
        free: list[int] = []
        for query in order:
            # First fit: queries with equally many documents leave no space free.
            index = next((index for index, space in enumerate(free) if space >= sizes[query]), len(shares))
            if index == len(shares):
                shares.append([])
                free.append(share_size)
            shares[index].append(query)
            free[index] -= sizes[query]
        # The last round gets empty shares, since each process needs one.
        shares += [[] for _ in range(-len(shares) % processes)]
        epochs.append(shares)
    steps = options.batch // options.mini_batch
    rounds = sum(len(shares) for shares in epochs) // processes
    most = min(rounds, -(-options.max_steps // steps)) if options.max_steps else rounds
    return Rounds(epochs, share_size, processes, most)


def describe_plan(options: GrpoOptions, rounds: Rounds) -> str:
    """Return the log line before the first step: the size of a round, and the parameters of the loss."""
    size = f"batch {options.batch:,} / mini {options.mini_batch:,} documents, G {options.group}"
    length = f"{options.epochs:g} epochs of {rounds.per_epoch:,} steps of {options.batch // options.mini_batch} updates"
    loss = f"clip {options.clip_ratio:g}, KL {options.kl_weight:g}, lr {options.learning_rate:g}"
    return f"{size}, {length}; {loss}; {options.max_prompt:,} + {options.max_response:,} tokens"


@dataclass(frozen=True, slots=True)
class RewardedRollout:
    """A rollout with its score, its rank in its query, its reward and its advantage."""

    row: int  # -1 for padding.
    text: str
    score: int | None
    rank: int | None
    reward: float | None
    advantage: float
    tokens: int


def rate_answers(
    recipe: ErankGrpo, references: Sequence[float | None], prompts: Sequence[str], answers: Sequence[Sequence[int]]
) -> list[RewardedRollout]:
    """Reward answers, G for each document: ranks are among all answers of a query, advantages among a document's.

    `prompts`: the index of each answer's row, -1 - row for padding; `references`: scores of all rows, as from
    `ErankGrpo.reference_scores`; `answers`: tokens.
    """
    rows, group = [int(prompt) for prompt in prompts], recipe.options.group
    texts = [answer_text(recipe.tokenizer, ids) for ids in answers]
    scores = [parse_answer(text) for text in texts]
    by_query: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row >= 0:
            by_query[recipe.rows[row].query_id].append(index)
    ranks: dict[int, int | None] = {}
    rewards: dict[int, float] = {}
    for indices in by_query.values():
        rollouts = []
        for index in indices:
            example = recipe.rows[rows[index]]
            rollouts.append(Rollout(example.doc_id, bool(example.label), scores[index], references[rows[index]]))
        ranks |= zip(indices, rank_scores([rollout.score for rollout in rollouts]), strict=True)
        rewards |= zip(indices, reward_rollouts(recipe.options.reward, rollouts), strict=True)
    advantages = [0.0] * len(rows)
    # The G answers of one document are contiguous.
    for begin in range(0, len(rows), group):
        if rows[begin] >= 0:
            document = range(begin, begin + group)
            advantages[begin : begin + group] = normalize_rewards([rewards[index] for index in document])
    return [
        RewardedRollout(
            row=max(row, -1),
            text=texts[index],
            score=scores[index],
            rank=ranks.get(index),
            reward=rewards.get(index),
            advantage=advantages[index],
            tokens=len(answers[index]),
        )
        for index, row in enumerate(rows)
    ]


class RankingTrainer(GRPOTrainer):
    """A GRPOTrainer with ERank's advantages, which stores the rollouts of every `rollouts_every`-th round."""

    recipe: ErankGrpo
    folder: JobFolder
    callback: JobCallback
    rated: Sequence[RewardedRollout] = ()

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        # TRL's advantages are replaced: its groups are documents, while our rewards rank all answers of a query.
        advantages = [rollout.advantage for rollout in self.rated]
        batch["advantages"] = torch.tensor(advantages, dtype=torch.float32, device=self.accelerator.device)
        rollouts = [rollout for share in gather_values(list(self.rated)) for rollout in share]
        self.callback.note(**summarize_rollouts(rollouts, self.recipe.rows))
        round_steps = self.recipe.options.batch // self.recipe.options.mini_batch
        number = int(self.state.global_step) // round_steps
        if number % self.recipe.options.rollouts_every == 0:
            kl = [value for share in gather_values(self._rollout_kl(batch)) for value in share]
            lines = []
            for rollout, rollout_kl in zip(rollouts, kl, strict=True):
                if rollout.row >= 0:
                    row = self.recipe.rows[rollout.row]
                    # `step`: the first step that is taken on the rollout.
                    line = {"step": int(self.state.global_step) + 1, "query_id": row.query_id, "doc_id": row.doc_id}
                    line |= {"positive": bool(row.label)}
                    line |= {name: getattr(rollout, name) for name in ("text", "score", "rank", "reward", "advantage")}
                    lines.append(json.dumps({**line, "kl": rollout_kl}, ensure_ascii=False) + "\n")
            if is_first_process():
                with (self.folder.path / "rollouts.jsonl").open("a") as file:
                    file.writelines(lines)
        return batch

    def _rollout_kl(self, batch: Mapping[str, Any]) -> list[float | None]:
        """Return the mean KL to the reference over the tokens of each rollout, or None without a reference."""
        if "ref_per_token_logps" not in batch:
            return [None] * len(self.rated)
        logps = batch.get("old_per_token_logps")
        if logps is None:
            # For a round's first update TRL stores no old log-probabilities, since they are the model's.
            ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
            mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
            with torch.no_grad():
                logps, _, _ = self._get_per_token_logps_and_entropies(
                    self.model, ids, mask, batch["completion_ids"].size(1), self.args.per_device_train_batch_size
                )
        log_ratio, answer_mask = batch["ref_per_token_logps"] - logps, batch["completion_mask"]
        # The estimator exp(x) - x - 1 with x = log p_ref - log p (Schulman's k3): never below 0.
        kl = torch.exp(log_ratio) - log_ratio - 1
        return [float(mean) for mean in (kl * answer_mask).sum(-1) / answer_mask.sum(-1).clamp(min=1)]


def reward_answers(
    recipe: ErankGrpo, references: Sequence[float | None], trainers: list[RankingTrainer], **batch: Any
) -> list[float | None]:
    """Return the rewards for TRL, None for padding, and set them on the trainer, the only member of `trainers`."""
    rated = rate_answers(recipe, references, batch["prompts"], batch["completion_ids"])
    trainers[0].rated = rated
    return [rollout.reward for rollout in rated]


def summarize_rollouts(rollouts: Sequence[RewardedRollout], rows: Sequence[ScoredExample]) -> dict[str, Any]:
    """Return a round's line of metrics."""
    rewarded = [rollout for rollout in rollouts if rollout.reward is not None]
    if not rewarded:
        return {}
    kinds: dict[str, list[float]] = {"positive": [], "negative": []}
    for rollout in rewarded:
        kinds["positive" if rows[rollout.row].label else "negative"].append(rollout.reward or 0.0)
    return {
        "reward_mean": sum(rollout.reward or 0.0 for rollout in rewarded) / len(rewarded),
        "response_tokens": sum(rollout.tokens for rollout in rewarded) / len(rewarded),
        "malformed": sum(rollout.score is None for rollout in rewarded) / len(rewarded),
        "reward_by_kind": {kind: sum(rewards) / len(rewards) for kind, rewards in kinds.items() if rewards},
    }


def truncate_rollouts(path: Path, step: int) -> None:
    """Delete the stored rollouts of later steps than this one: they will be sampled again."""
    if path.exists():
        lines = [line for line in read_lines(path) if line["step"] <= step]
        write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


class RoundCallback(JobCallback):
    """A JobCallback that saves and stops only between rounds: the rest of a round would be sampled differently."""

    round_steps = 1

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        super().on_train_begin(args, state, control, **rest)
        # Dev rows are measured only between rounds, so the interval is rounded up to whole rounds.
        self.measure_every = -(-self.measure_every // self.round_steps) * self.round_steps

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        super().on_step_end(args, state, control, **rest)
        if self.progress.step % self.round_steps:
            control.should_save = False

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **rest: Any) -> None:
        if logs and "clip_ratio/region_mean" in logs:
            self.step_metrics["clip_share"] = logs["clip_ratio/region_mean"]
        super().on_log(args, state, control, logs, **rest)

    def stop_if_asked(self, control: Any) -> None:
        if self.progress.step % self.round_steps == 0:
            super().stop_if_asked(control)
