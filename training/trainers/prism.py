"""Recipe `prism`: the score before the answer and the text of the answer from one forward pass (Prism 3.2).

loss = 20 x (sigmoid(l_yes - l_no) - teacher)^2 + 1 x cross-entropy of the target text. Both read
the last states at label positions only: the token before the answer, and each token of the answer
but the last. The margin is a product of such a state in fp32, and of the vocabulary's logits no
more than a tile is ever there.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import Trainer, TrainingArguments

from corpus.errors import BadInput
from training.published.base import answer_ids, check_causal, check_end_token, load_model, load_tokenizer, measuring
from training.published.causal import LoraTrained
from training.published.margins import AnswerHead, PromptTokens, pad_rows
from training.published.tokens import encode_parted, part_controls, truncate_ids
from training.recipes import rendering
from training.recipes.data import POINT, SFT, Example, check_for_prism, thin_texts
from training.recipes.job_folder import JobFolder
from training.recipes.table import PrismOptions, RecipeOptions
from training.trainers.callback import JobCallback
from training.trainers.memory import check_memory
from training.trainers.recipe import TrainingTask
from training.trainers.steps import WholeSteps
from training.trainers.token_tables import TokenRows, list_lengths, tokenize_rows

TILE = 512  # Label positions whose logits are there at once, in fp32: a vocabulary of 248,000 takes half a GB.


@dataclass(frozen=True, slots=True)
class PrismRow:
    """A row as tokens: ids of prompt and answer; the answer begins at `start`."""

    ids: list[int]
    start: int
    teacher: float
    point: bool
    sft: bool
    whole: int = 0  # How many tokens it would have if nothing were cut.

    @property
    def label_positions(self) -> range:
        """The positions whose logits the loss reads."""
        # The logits at a position are those of the next token, hence one before the answer.
        return range(self.start - 1, len(self.ids) - 1 if self.sft else self.start)


class PrismRecipe:
    """`recipe.Recipe` of a causal base with a LoRA adapter. BadInput for what it cannot train."""

    needs_teacher = True  # Whether the set must bring the scores that are learned.

    def __init__(self, task: TrainingTask) -> None:
        self.task, options = task, task.options
        self.asked = rendering.PROMPTS[options.prompt]
        if options.lora_rank < 1:
            raise BadInput(f"Recipe {task.recipe} trains an adapter: lora_rank must be 1 or more")
        check_for_prism(task.data, needs_teacher=self.needs_teacher)
        self.config = check_causal(task.base)
        if options.packing:
            check_packing(self.config)
        self.tokenizer = load_tokenizer(task.base)
        self.yes_id, self.no_id = answer_ids(self.tokenizer)
        self.end_id = check_end_token(self.tokenizer)
        self.share = options.sft_share if isinstance(options, PrismOptions) else 1.0
        taught = thin_texts(task.data.train, self.share, options.seed)
        self.rows = self._tokenized([one for one in taught if one.losses])
        self.weights = {"point": options.point_weight, "sft": options.sft_weight}
        self._lengths = list_lengths(self.rows.table, "ids")
        answers = max(length - start for length, start in zip(self._lengths, self.rows.table["start"], strict=True))
        check_memory(task, self.config, max(self.lengths()), min(answers + 1, TILE))
        base = load_model(task.base, task.device, task.dtype, options.attention)
        if task.checkpointing:
            # Else nothing is recomputed: frozen embeddings give inputs without a gradient.
            base.enable_input_require_grads()
        model: Any = get_peft_model(base, lora_config(base, options))
        self.without_adapter = name_without_adapter(model)
        self.model = model.train()

    def _tokenized(self, examples: Sequence[Example]) -> TokenRows:
        make = lambda number: asdict(self._row(examples[number]))  # noqa: E731
        decides = (self.asked.sha256, self.task.options.max_length, self.share, self.task.options.seed)
        return TokenRows(tokenize_rows(self.task, self.tokenizer, len(examples), make, *decides), PrismRow)

    def _row(self, one: Example) -> PrismRow:
        sft = SFT in one.losses
        # What a target says stays text; the token that ends it is the only control.
        text = rendering.render_target(int(one.label or 0), one.target).removesuffix(rendering.END)
        parted = part_controls(self.tokenizer, [text])
        answer = [*encode_parted(self.tokenizer, parted)[0], self.end_id] if sft else []
        room = self.task.options.max_length - len(answer)
        anything = replace(self.prompt, max_length=10**9)
        whole, bare = anything.encode(
            self.tokenizer, [(one.query, one.document, one.instruction), (one.query, "", one.instruction)]
        )
        if len(bare.ids) > room:
            raise BadInput(
                f"Query {one.query_id!r} with document {one.doc_id!r} does not fit into max_length "
                f"{self.task.options.max_length} even without its document: raise max_length"
            )
        prompt = truncate_ids(whole.ids, self.tokenizer, room, self.prompt.tail)
        teacher = 0.0 if one.teacher is None else one.teacher
        size = len(whole.ids) + len(answer)
        return PrismRow([*prompt, *answer], len(prompt), teacher, POINT in one.losses, sft, size)

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback = JobCallback(folder, self.task, asked_to_stop, self.dev_margins)
        self.row_lengths = callback.tell_lengths(self.rows.table["whole"], self.task.options.max_length)
        if self.without_adapter:
            callback.say(f"weights without an adapter: {', '.join(self.without_adapter)}")
        return callback.train(self.trainer(callback))

    def trainer(self, callback: JobCallback) -> Any:
        """Return transformers' trainer of whole steps."""
        args = callback.arguments(TrainingArguments, len(self.lengths()))
        trainer = PrismTrainer(self.model, args, train_dataset=self.rows, callbacks=[callback])
        return trainer.bind(callback, self)

    def lengths(self) -> list[int]:
        return self._lengths

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        chosen = [self.rows[place] for place in rows]
        return {"point": sum(row.point for row in chosen), "sft": sum(row.sft for row in chosen)}

    def forward(self, rows: Sequence[int]) -> dict[str, Tensor]:
        chosen = [self.rows[place] for place in rows]
        with torch.autocast(self.task.device, torch.bfloat16, enabled=self.task.precision == "bf16"):
            states = label_states(
                self.model, chosen, int(self.tokenizer.pad_token_id), packed=self.task.options.packing
            )
            return prism_losses(
                OutputHead(self.model, self.yes_id, self.no_id), states, chosen, self.task.options.sft_reduction
            )

    @property
    def prompt(self) -> PromptTokens:
        return PromptTokens(self.asked.render, self.yes_id, self.no_id, self.task.options.max_length)

    def dev_margins(self, rows: Sequence[Example]) -> list[float]:
        with measuring(self.model):
            return self.prompt.margins(self.model, self.tokenizer, rows)

    def trained(self, checkpoint: Path) -> LoraTrained:
        return LoraTrained(self.task.base, checkpoint, self.prompt, device=self.task.device)

    def record(self) -> dict[str, Any]:
        return {
            "kind": "causal",
            "prompt": self.asked.text,
            "prompt_sha256": self.asked.sha256,
            "yes_id": self.yes_id,
            "no_id": self.no_id,
            "max_length": self.task.options.max_length,
            "row_lengths": self.row_lengths,
        }


def check_packing(config: Any) -> None:
    """BadInput where rows in one sequence would see each other (linear attention)."""
    config = config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds - {"full_attention", "sliding_attention"}:
        raise BadInput(
            f"Packing is not exact on {config.model_type}: its {', '.join(sorted(kinds - {'full_attention'}))} layers "
            "carry what one row says into the next: leave packing off"
        )


def lora_targets(base: Any, named: str) -> Any:
    """Return what gets an adapter, for peft. BadInput for layers that are missing."""
    if named == "all-linear":
        return named
    there = {name.rpartition(".")[2] for name, part in base.named_modules() if isinstance(part, torch.nn.Linear)}
    targets = [one.strip() for one in named.split(",") if one.strip()]
    if missing := [one for one in targets if one not in there]:
        raise BadInput(
            f"lora_targets: the base has no linear layer named {missing[0]!r}; it has {', '.join(sorted(there))}"
        )
    return targets


def lora_config(base: Any, options: RecipeOptions, kind: str = "CAUSAL_LM") -> LoraConfig:
    """Return the adapter that the options say, whose first matrices are random by their seed. Raises BadInput."""
    torch.manual_seed(options.seed)
    return LoraConfig(
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        target_modules=lora_targets(base, options.lora_targets),
        task_type=kind,
    )


def name_without_adapter(model: Any) -> list[str]:
    """Return the names of the weights of two and more dimensions that get no adapter: embeddings, convolutions ..."""
    found = [
        name.removeprefix("base_model.model.").removesuffix(".weight")
        for name, value in model.named_parameters()
        if value.ndim > 1 and ".base_layer." not in name and "lora_" not in name
    ]
    return sorted({".".join(part for part in name.split(".") if not part.isdigit()) for name in found})


class PrismTrainer(WholeSteps, Trainer):  # type: ignore[misc]
    """transformers' trainer, whose steps are whole."""


def label_states(model: Any, rows: Sequence[PrismRow], pad: int, *, packed: bool = False) -> Tensor:
    """Return the decoder's last states at all label positions, row after row: (sum of positions, hidden size)."""
    decoder = model.get_base_model().get_decoder()
    device = next(model.parameters()).device
    # Padded on the right, where a causal model does not look. Packed: several rows in one sequence,
    # whose positions begin anew and so keep attention within each row.
    if packed:
        ids = torch.tensor([[one for row in rows for one in row.ids]], device=device)
        places = torch.tensor([[place for row in rows for place in range(len(row.ids))]], device=device)
        shape = {"position_ids": places}
        begins = [(0, begin) for begin in accumulate((len(row.ids) for row in rows[:-1]), initial=0)]
    else:
        ids, mask = pad_rows([row.ids for row in rows], pad, device)
        shape = {"attention_mask": mask}
        begins = [(place, 0) for place in range(len(rows))]
    keep = torch.zeros_like(ids, dtype=torch.bool)
    for row, (line, begin) in zip(rows, begins, strict=True):
        keep[line, begin + row.label_positions.start : begin + row.label_positions.stop] = True
    states: Tensor = decoder(input_ids=ids, use_cache=False, **shape).last_hidden_state[keep]
    return states


class OutputHead(AnswerHead):
    """The last layer of a causal model, applied to states: to two words, or to all of the vocabulary in tiles."""

    def entropies(self, states: Tensor, answers: Tensor) -> Tensor:
        """Return the cross-entropy of each answer's token in fp32; a tile's logits are made again on the way back."""
        pairs = zip(torch.split(states, TILE), torch.split(answers, TILE), strict=True)
        return torch.cat([checkpoint(self._tile, *pair, use_reentrant=False) for pair in pairs])

    def _tile(self, states: Tensor, answers: Tensor) -> Tensor:
        logits = self.bound(self.output(states.to(self.output.weight.dtype)).float() * self.scale)
        return functional.cross_entropy(logits, answers, reduction="none")


def prism_losses(head: OutputHead, states: Tensor, rows: Sequence[PrismRow], reduction: str) -> dict[str, Tensor]:
    """Return the sums of (sigmoid(margin) - teacher)^2 and of cross-entropy (sum or mean over a row's tokens)."""
    sizes = [len(row.label_positions) for row in rows]
    device = states.device
    firsts = torch.tensor([0, *sizes[:-1]], device=device).cumsum(0)
    wanted = torch.tensor([row.teacher for row in rows], device=device)
    has_point = torch.tensor([row.point for row in rows], device=device)
    point = ((torch.sigmoid(head.compare(states[firsts])) - wanted) ** 2 * has_point).sum()
    kept = [place for place, row in enumerate(rows) for _ in row.label_positions if row.sft]
    if not kept:
        # Zero, yet part of the graph, so that a step can add up both parts of every pass.
        return {"point": point, "sft": states.float().sum() * 0.0}
    own = torch.tensor([row.sft for row in rows for _ in row.label_positions], device=device)
    answers = torch.tensor([one for row in rows if row.sft for one in row.ids[row.start :]], device=device)
    tokens = head.entropies(states[own], answers)
    if reduction == "mean":
        tokens = tokens / torch.tensor([sizes[place] for place in kept], device=device)
    return {"point": point, "sft": tokens.sum()}
