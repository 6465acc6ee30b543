"""Recipe `erank-grpo`: rewards of ranks among all rollouts of a query, by TRL's GRPOTrainer (ERank 3.3, table 9).

A round samples G answers to each document of some whole queries, rewards them, and takes one or
more steps of the optimiser on them. Policy and reference both begin as the base, which is the model
of `erank-sft`.
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
from training.erank.chains import ChainPrompt, answer_text, encode_chain_prompts
from training.erank.sft import describe_answers, split_step
from training.erank.trained import ErankTrained
from training.jobs.folder import JobFolder, read_lines, write_atomically
from training.recipes.data import Example
from training.recipes.erank_data import ScoredExample, group_by_query
from training.recipes.erank_prompt import TAIL, chain_prompt_sha256
from training.recipes.erank_rewards import Rollout, normalize_rewards, rank_scores, reward_rollouts
from training.recipes.table import GrpoOptions
from training.trainers.base import check_causal, check_end_token, load_tokenizer, measuring
from training.trainers.callback import JobCallback
from training.trainers.causal import load_causal
from training.trainers.margins import write_answers
from training.trainers.memory import check_memory
from training.trainers.processes import gather, is_leading, place_in_world, wait_for_all
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import TokenRows, list_lengths, tokenize_rows
from training.trainers.tokens import EncodedRow, truncate_ids


class ErankGrpo:
    """`recipe.Recipe` of a model of `erank-sft`. BadInput for what it cannot train."""

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
        self.row_lengths: dict[str, Any] = {}  # Until train has said them.
        self.rounds = plan_rounds({query: len(rows) for query, rows in queries.items()}, self.options)
        self.rows: list[ScoredExample] = [row for rows in queries.values() for row in rows]  # type: ignore[misc]
        # A query's rows lie side by side, so that a range names them.
        first, at = {}, 0
        for query, rows in queries.items():
            first[query], at = at, at + len(rows)
        self.places = {query: range(first[query], first[query] + len(rows)) for query, rows in queries.items()}
        self.encoded = self._tokenized()
        longest = max(list_lengths(self.encoded.table, "ids")) + self.options.max_response
        check_memory(task, config, longest, copies=int(self.options.kl_weight > 0))
        # In fp32 whatever the device: steps of 1e-6 vanish in bf16's weights; the passes may be bf16 all the same.
        self.model = load_causal(task.base, task.device, attention=self.options.attention)

    def _tokenized(self) -> TokenRows:
        """Return the prompts; `whole`: the tokens of each if its document were not cut."""

        def make(number: int) -> dict[str, Any]:
            (ids,) = encode_chain_prompts(self.tokenizer, [self.rows[number]])
            return {"ids": truncate_ids(ids, self.tokenizer, self.options.max_prompt, TAIL), "whole": len(ids)}

        decides = (chain_prompt_sha256(), self.options.max_prompt)
        table = tokenize_rows(self.task, self.tokenizer, len(self.rows), make, *decides)
        return TokenRows(table, lambda ids, whole: EncodedRow(ids, len(ids) < whole))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback = RoundCallback(folder, self.task, asked_to_stop, self.dev_margins)
        references = self.reference_scores(folder)
        trainer = self.make_trainer(folder, callback, references)
        callback.round_steps = self.options.batch // self.options.mini_batch
        if is_leading():
            print(f"{len(self.places):,} queries, {len(self.rows):,} documents; {self.left_out:,} queries left out")  # noqa: T201
            print(describe_plan(self.options, self.rounds), flush=True)  # noqa: T201
            keep_rollouts(folder.path / "rollouts.jsonl", (folder.steps() or [0])[-1])
        self.row_lengths = callback.tell_lengths(self.encoded.table["whole"], self.options.max_prompt)
        return callback.train(trainer)

    def reference_scores(self, folder: JobFolder) -> list[float | None]:
        """Return t of every row: the teacher's for r_SE, else the base's own greedy score, asked once and stored."""
        if self.options.reward == "se":
            return [float(row.score) for row in self.rows]
        path = folder.path / "references.jsonl"
        # Any process that sees the file: a shared disk may show it to some of them a moment later.
        if not any(gather(path.exists())):
            self._write_references(folder, path)
        wait_for_all()
        found = {(line["query_id"], line["doc_id"]): line["score"] for line in read_lines(path)}
        # Where the reference wrote no score the teacher's stands in: without one there is nothing to stay near.
        scores = [found[row.query_id, row.doc_id] for row in self.rows]
        return [float(row.score if score is None else score) for row, score in zip(self.rows, scores, strict=True)]

    def _write_references(self, folder: JobFolder, path: Path) -> None:
        """Score every document with the model as it is; each process takes its share, the first one writes them all."""
        if is_leading():
            folder.say(phase="scoring the documents with the reference model")
        rank, size = place_in_world()
        own = self.prompt.write_scores(self.model.eval(), self.tokenizer, self.rows[rank::size])
        shares = gather([one.score for one in own])
        if is_leading():
            scores = [shares[place % size][place // size] for place in range(len(self.rows))]
            lines = [
                {"query_id": row.query_id, "doc_id": row.doc_id, "score": score}
                for row, score in zip(self.rows, scores, strict=True)
            ]
            write_atomically(path, "".join(json.dumps(line) + "\n" for line in lines))

    def make_trainer(self, folder: JobFolder, callback: JobCallback, references: Sequence[float | None]) -> Any:
        from datasets import Dataset  # type: ignore[import-untyped]

        options = self.options
        order = self.rounds.order(self.places)
        processes = max(1, options.processes)
        each, times = split_step(
            options.mini_batch * options.group // processes, options.max_prompt + options.max_response,
            options.token_budget,
        )  # fmt: skip
        rounds = len(order) // options.batch
        args = callback.arguments(
            GRPOConfig,
            rows=len(order),
            max_steps=min(rounds, self.rounds.most) * (options.batch // options.mini_batch),
            per_device_train_batch_size=each,
            gradient_accumulation_steps=times,
            generation_batch_size=options.batch * options.group,
            num_generations=options.group,
            max_completion_length=options.max_response,
            temperature=options.temperature,
            top_k=0,
            top_p=1.0,
            beta=options.kl_weight,
            epsilon=options.clip_ratio,
            num_iterations=1,
            # TRL's own defaults of these would train by another loss than the paper's table 9.
            loss_type="grpo" if options.grpo_reduction == "rollout" else "dapo",
            scale_rewards="none",  # Advantages are ours: one divided by the SD plus 1e-6, and exactly 0 where it is 0.
            use_bias_correction_kl=False,
            shuffle_dataset=False,  # A round's rows stand together, and a query's within them.
            disable_dropout=True,
            remove_unused_columns=False,
        )
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # Of rollout_func, used with the pinned version.
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
        # The reference only scores, so half the memory is exact enough.
        if trainer.ref_model is not None and self.task.precision == "bf16":
            torch.nn.Module.to(trainer.ref_model, torch.bfloat16)
        return trainer

    def sample(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        """Return rollouts for TRL: prompts are places of rows; equal steps sample alike."""
        # -1 - row fills a free place with a row that is sampled and gets no reward.
        rows = [self.encoded[max(place, -1 - place)] for place in map(int, prompts)]
        model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
        devices = [trainer.accelerator.device] if self.task.device == "cuda" else []
        model.eval()
        # A generator of its own: sampling must not move the one that the trainer resumes with.
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
    """Queries of each round, for every epoch; free places of a round are filled, unrewarded."""

    bins: Sequence[Sequence[Sequence[str]]]  # Epoch -> process's share of a round, one after the other -> queries.
    room: int  # Documents of a share.
    shares: int  # Of a round: one for each process.
    most: int  # Rounds at most.

    @property
    def per_epoch(self) -> int:
        """Rounds of the first epoch."""
        return len(self.bins[0]) // self.shares

    def order(self, places: Mapping[str, range]) -> list[int]:
        """Return the rows of all rounds in their order; -1 - row fills a place."""
        rows: list[int] = []
        for bins in self.bins:
            for queries in bins:
                own = [place for query in queries for place in places[query]]
                last = own[-1] if own else 0
                rows += [*own, *[-1 - last] * (self.room - len(own))]
        return rows


def plan_rounds(sizes: Mapping[str, int], options: GrpoOptions) -> Rounds:
    """Plan rounds of whole queries, anew for each epoch, in a seeded order. Raises BadInput for a query too large."""
    shares = max(1, options.processes)
    room = options.batch // shares
    largest = max(sizes, key=lambda query: sizes[query])
    if sizes[largest] > room:
        raise BadInput(
            f"Query {largest!r} has {sizes[largest]:,} documents and a process takes {room:,} at once: raise batch"
        )
    epochs = []
    for epoch in range(max(1, round(options.epochs))):
        # Sorted before it is shuffled, so that only the seed decides.
        order = sorted(sizes)
        random.Random(f"{options.seed} {epoch}").shuffle(order)
        bins: list[list[str]] = []
        free: list[int] = []
        for query in order:
            # The first that has room: with as many documents for each query nothing is left free.
            place = next((at for at, left in enumerate(free) if left >= sizes[query]), len(bins))
            if place == len(bins):
                bins.append([])
                free.append(room)
            bins[place].append(query)
            free[place] -= sizes[query]
        # Empty shares fill the last round, since each process needs one.
        bins += [[] for _ in range(-len(bins) % shares)]
        epochs.append(bins)
    steps = options.batch // options.mini_batch
    rounds = sum(len(bins) for bins in epochs) // shares
    most = min(rounds, -(-options.max_steps // steps)) if options.max_steps else rounds
    return Rounds(epochs, room, shares, most)


def describe_plan(options: GrpoOptions, rounds: Rounds) -> str:
    """Return what the log says before the first step: the size of a round, and the numbers that decide the loss."""
    size = f"batch {options.batch:,} / mini {options.mini_batch:,} documents, G {options.group}"
    length = f"{options.epochs:g} epochs of {rounds.per_epoch:,} steps of {options.batch // options.mini_batch} updates"
    loss = f"clip {options.clip_ratio:g}, KL {options.kl_weight:g}, lr {options.learning_rate:g}"
    return f"{size}, {length}; {loss}; {options.max_prompt:,} + {options.max_response:,} tokens"


@dataclass(frozen=True, slots=True)
class RewardedRollout:
    """A rollout as it is logged."""

    row: int  # -1: it fills a place.
    text: str
    score: int | None
    rank: int | None
    reward: float | None
    advantage: float
    tokens: int


def rate_answers(
    recipe: ErankGrpo, references: Sequence[float | None], prompts: Sequence[str], answers: Sequence[Sequence[int]]
) -> list[RewardedRollout]:
    """Reward G answers of each document in turn: ranks are over all of a query, advantages over those of a document."""
    rows, group = [int(place) for place in prompts], recipe.options.group
    texts = [answer_text(recipe.tokenizer, ids) for ids in answers]
    scores = [parse_answer(text) for text in texts]
    of_query: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row >= 0:
            of_query[recipe.rows[row].query_id].append(place)
    ranks: dict[int, int | None] = {}
    rewards: dict[int, float] = {}
    for places in of_query.values():
        rollouts = [
            Rollout(recipe.rows[rows[at]].doc_id, bool(recipe.rows[rows[at]].label), scores[at], references[rows[at]])
            for at in places
        ]
        ranks |= zip(places, rank_scores([one.score for one in rollouts]), strict=True)
        rewards |= zip(places, reward_rollouts(recipe.options.reward, rollouts), strict=True)
    advantages = [0.0] * len(rows)
    # The G answers of one document lie side by side.
    for at in range(0, len(rows), group):
        if rows[at] >= 0:
            advantages[at : at + group] = normalize_rewards([rewards[place] for place in range(at, at + group)])
    return [
        RewardedRollout(
            max(row, -1), texts[at], scores[at], ranks.get(at), rewards.get(at), advantages[at], len(answers[at])
        )
        for at, row in enumerate(rows)
    ]


class RankingTrainer(GRPOTrainer):
    """GRPOTrainer with ERank's advantages, which keeps the rollouts of some rounds."""

    recipe: ErankGrpo
    folder: JobFolder
    callback: JobCallback
    rated: Sequence[RewardedRollout] = ()

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = super()._generate_and_score_completions(inputs)
        # TRL's advantages are replaced: its groups are documents, rewards rank a query.
        advantages = [one.advantage for one in self.rated]
        found["advantages"] = torch.tensor(advantages, dtype=torch.float32, device=self.accelerator.device)
        every = [one for share in gather(list(self.rated)) for one in share]
        self.callback.note(**summarize_rollouts(every, self.recipe.rows))
        round_steps = self.recipe.options.batch // self.recipe.options.mini_batch
        number = int(self.state.global_step) // round_steps
        if number % self.recipe.options.rollouts_every == 0:
            kl = [one for share in gather(self._rollout_kl(found)) for one in share]
            if is_leading():
                self._keep_rollouts(every, kl)
        return found

    def _keep_rollouts(self, rated: Sequence[RewardedRollout], kl: Sequence[float | None]) -> None:
        """Add the rollouts of a round, those of all processes, to rollouts.jsonl."""
        with (self.folder.path / "rollouts.jsonl").open("a") as file:
            for at, one in enumerate(rated):
                if one.row >= 0:
                    row = self.recipe.rows[one.row]
                    # `step`: the first that was taken on it.
                    line = {"step": int(self.state.global_step) + 1, "query_id": row.query_id, "doc_id": row.doc_id}
                    line |= {"positive": bool(row.label)}
                    line |= {name: getattr(one, name) for name in ("text", "score", "rank", "reward", "advantage")}
                    file.write(json.dumps({**line, "kl": kl[at]}, ensure_ascii=False) + "\n")

    def _rollout_kl(self, found: Mapping[str, Any]) -> list[float | None]:
        """Return each rollout's mean KL to the reference over its tokens; None without one."""
        if "ref_per_token_logps" not in found:
            return [None] * len(self.rated)
        own = found.get("old_per_token_logps")
        if own is None:
            # In a round's first update TRL keeps no old log-probabilities: they are the model's.
            ids = torch.cat([found["prompt_ids"], found["completion_ids"]], dim=1)
            mask = torch.cat([found["prompt_mask"], found["completion_mask"]], dim=1)
            with torch.no_grad():
                own, _, _ = self._get_per_token_logps_and_entropies(
                    self.model, ids, mask, found["completion_ids"].size(1), self.args.per_device_train_batch_size
                )
        apart, held = found["ref_per_token_logps"] - own, found["completion_mask"]
        # The estimator exp(x) - x - 1 with x = log p_ref - log p (Schulman's k3): never below 0.
        kl = torch.exp(apart) - apart - 1
        return [float(one) for one in (kl * held).sum(-1) / held.sum(-1).clamp(min=1)]


def reward_answers(
    recipe: ErankGrpo, references: Sequence[float | None], trainers: list[RankingTrainer], **given: Any
) -> list[float | None]:
    """Return rewards for TRL, None for filled places; `trainers`: who is told of them."""
    rated = rate_answers(recipe, references, given["prompts"], given["completion_ids"])
    trainers[0].rated = rated
    return [one.reward for one in rated]


def summarize_rollouts(rated: Sequence[RewardedRollout], rows: Sequence[ScoredExample]) -> dict[str, Any]:
    """Return what a line of metrics says of a round."""
    own = [one for one in rated if one.reward is not None]
    if not own:
        return {}
    kinds: dict[str, list[float]] = {"positive": [], "negative": []}
    for one in own:
        kinds["positive" if rows[one.row].label else "negative"].append(one.reward or 0.0)
    return {
        "reward_mean": sum(one.reward or 0.0 for one in own) / len(own),
        "response_tokens": sum(one.tokens for one in own) / len(own),
        "malformed": sum(one.score is None for one in own) / len(own),
        "reward_by_kind": {kind: sum(found) / len(found) for kind, found in kinds.items() if found},
    }


def keep_rollouts(path: Path, step: int) -> None:
    """Forget the rollouts of rounds after this step: they are sampled again."""
    if path.exists():
        kept = [line for line in read_lines(path) if line["step"] <= step]
        write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept))


class RoundCallback(JobCallback):
    """Saves and stops between rounds only: another model would sample the rest anew."""

    round_steps = 1

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        super().on_train_begin(args, state, control, **rest)
        # Measured between rounds only, so the interval is rounded up to whole rounds.
        self.every = -(-self.every // self.round_steps) * self.round_steps

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        super().on_step_end(args, state, control, **rest)
        if self.progress.step % self.round_steps:
            control.should_save = False

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **rest: Any) -> None:
        if logs and "clip_ratio/region_mean" in logs:
            self.news["clip_share"] = logs["clip_ratio/region_mean"]
        super().on_log(args, state, control, logs, **rest)

    def stop_if_asked(self, control: Any) -> None:
        if self.progress.step % self.round_steps == 0:
            super().stop_if_asked(control)
