"""Recipe `prism`: a score and a text are learned from one forward pass (Prism 3.2).

loss = 20 x (sigmoid(l_yes - l_no) - teacher)^2 + 1 x cross-entropy of the target text. Both use only the last states at
label positions: the token before the answer, and each token of the answer except the last. Margins are computed from
these states in fp32, and logits of the vocabulary in tiles, so that they never fill the memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
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

TILE = 512  # Label positions whose fp32 logits are computed at once: half a GB with a vocabulary of 248,000.


@dataclass(frozen=True, slots=True)
class PrismRow:
    """The tokens of a prompt and its answer, which begins at `start`, with the losses and the teacher's score."""

    ids: list[int]
    start: int
    teacher: float
    point: bool
    sft: bool
    whole: int = 0  # The number of tokens before the document was cut, with room for the longest answer.

    @property
    def label_positions(self) -> range:
        """The positions whose logits the loss uses."""
        # The logits at a position are those of the next token, so the first is one before the answer.
        return range(self.start - 1, len(self.ids) - 1 if self.sft else self.start)


class PrismRecipe:
    """A `recipe.Recipe` for a causal base with a LoRA adapter.

    Raises BadInput for a base or set that it cannot train on.
    """

    needs_teacher = True  # Whether the set must contain the teacher's scores.

    def __init__(self, task: TrainingTask) -> None:
        self.task, options = task, task.options
        self.rerank_prompt = rendering.PROMPTS[options.prompt]
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
        thinned = thin_texts(task.data.train, self.share, options.seed)
        self.examples = [example for example in thinned if example.losses]
        self.rows = self._tokenized()
        self.weights = {"point": options.point_weight, "sft": options.sft_weight}
        self._lengths = list_lengths(self.rows.table, "ids")
        # Steps are made of rows with similar prompts: with their answers, most steps would have rows of one label.
        self.order_by = list(self.rows.table["start"]) if any(self.rows.table["sft"]) else None
        answers = max(length - start for length, start in zip(self._lengths, self.rows.table["start"], strict=True))
        check_memory(task, self.config, max(self.lengths()), min(answers + 1, TILE))
        base = load_model(task.base, task.device, task.dtype, options.attention)
        if task.checkpointing:
            # Otherwise the outputs of frozen embeddings have no gradient, and nothing is recomputed.
            base.enable_input_require_grads()
        model: Any = get_peft_model(base, lora_config(base, options))
        # Weight matrices without an adapter, such as embeddings and convolutions, by name without the layer's number.
        names = [
            name.removeprefix("base_model.model.").removesuffix(".weight").split(".")
            for name, weight in model.named_parameters()
            if weight.ndim > 1 and ".base_layer." not in name and "lora_" not in name
        ]
        self.without_adapter = sorted({".".join(part for part in name if not part.isdigit()) for name in names})
        self.model = model.train()

    @cached_property
    def answer_room(self) -> int:
        """The number of tokens of the longest answer, for which every row has room.

        A cut that left room for the row's own answer would tell the label by its place.
        """
        return max(map(len, self._answers(self.examples)), default=0)

    def _tokenized(self) -> TokenRows:
        make = lambda number: asdict(self._encode(self.examples[number]))  # noqa: E731
        cache_key = (self.rerank_prompt.sha256, self.task.options.max_length, self.share, self.task.options.seed)
        return TokenRows(tokenize_rows(self.task, self.tokenizer, len(self.examples), make, *cache_key), PrismRow)

    def _answers(self, examples: Sequence[Example]) -> list[list[int]]:
        """Return the tokens of the answers, each with its end; none for a row whose text is not learned."""
        texts = [
            rendering.render_target(int(example.label or 0), example.target).removesuffix(rendering.END)
            for example in examples
            if SFT in example.losses
        ]
        # Control tokens in a target are encoded as plain text, except for the token that ends it.
        encoded = iter(encode_parted(self.tokenizer, part_controls(self.tokenizer, texts)) if texts else ())
        return [[*next(encoded), self.end_id] if SFT in example.losses else [] for example in examples]

    def _encode(self, example: Example) -> PrismRow:
        """Return the tokens of an example, its document cut to make room for any answer. Raises BadInput."""
        sft = SFT in example.losses
        (answer,) = self._answers([example])
        max_prompt = self.task.options.max_length - self.answer_room
        full_prompt, bare_prompt = replace(self.prompt, max_length=10**9).encode(
            self.tokenizer,
            [(example.query, document, example.instruction) for document in (example.document, "")],
        )
        if len(bare_prompt.ids) > max_prompt:
            raise BadInput(
                f"Query {example.query_id!r} with document {example.doc_id!r} does not fit into max_length "
                f"{self.task.options.max_length} even without its document, beside the longest answer of the set "
                f"({self.answer_room} tokens): raise max_length"
            )
        prompt = truncate_ids(full_prompt.ids, self.tokenizer, max_prompt, self.prompt.tail)
        return PrismRow(
            ids=[*prompt, *answer],
            start=len(prompt),
            teacher=0.0 if example.teacher is None else example.teacher,
            point=POINT in example.losses,
            sft=sft,
            whole=len(full_prompt.ids) + self.answer_room,
        )

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        callback = JobCallback(folder, self.task, asked_to_stop, self.dev_margins)
        self.row_lengths = callback.report_lengths(self.rows.table["whole"], self.task.options.max_length)
        if self.without_adapter:
            callback.say(f"weights without an adapter: {', '.join(self.without_adapter)}")
        return callback.train(self.trainer(callback))

    def trainer(self, callback: JobCallback) -> Any:
        """Return transformers' trainer with this recipe's rows and losses."""
        args = callback.arguments(TrainingArguments, len(self.lengths()))
        trainer = PrismTrainer(self.model, args, train_dataset=self.rows, callbacks=[callback])
        return trainer.bind(callback, self, self.order_by)

    def lengths(self) -> list[int]:
        return self._lengths

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        batch = [self.rows[row] for row in rows]
        return {"point": sum(row.point for row in batch), "sft": sum(row.sft for row in batch)}

    def forward(self, rows: Sequence[int]) -> dict[str, Tensor]:
        batch = [self.rows[row] for row in rows]
        with torch.autocast(self.task.device, torch.bfloat16, enabled=self.task.precision == "bf16"):
            states = label_states(self.model, batch, int(self.tokenizer.pad_token_id), packed=self.task.options.packing)
            head = OutputHead(self.model, self.yes_id, self.no_id)
            return prism_losses(head, states, batch, self.task.options.sft_reduction)

    @property
    def prompt(self) -> PromptTokens:
        return PromptTokens(self.rerank_prompt.render, self.yes_id, self.no_id, self.task.options.max_length)

    def dev_margins(self, rows: Sequence[Example]) -> list[float]:
        with measuring(self.model):
            return self.prompt.margins(self.model, self.tokenizer, rows)

    def trained(self, checkpoint: Path) -> LoraTrained:
        return LoraTrained(self.task.base, checkpoint, self.prompt, device=self.task.device)

    def record(self) -> dict[str, Any]:
        return {
            "kind": "causal",
            "prompt": self.rerank_prompt.text,
            "prompt_sha256": self.rerank_prompt.sha256,
            "yes_id": self.yes_id,
            "no_id": self.no_id,
            "max_length": self.task.options.max_length,
            "row_lengths": self.row_lengths,
        }


def check_packing(config: Any) -> None:
    """Raise BadInput for a model in which packed rows would affect each other, as with linear attention."""
    config = config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds - {"full_attention", "sliding_attention"}:
        raise BadInput(
            f"Packing is not exact on {config.model_type}: its {', '.join(sorted(kinds - {'full_attention'}))} layers "
            "carry what one row says into the next: leave packing off"
        )


def lora_targets(base: Any, option: str) -> Any:
    """Return peft's target modules for the option `lora_targets`. Raises BadInput for layers that do not exist."""
    if option == "all-linear":
        return option
    layers = {name.rpartition(".")[2] for name, module in base.named_modules() if isinstance(module, torch.nn.Linear)}
    targets = [name.strip() for name in option.split(",") if name.strip()]
    if missing := [name for name in targets if name not in layers]:
        raise BadInput(
            f"lora_targets: the base has no linear layer named {missing[0]!r}; it has {', '.join(sorted(layers))}"
        )
    return targets


def lora_config(base: Any, options: RecipeOptions, kind: str = "CAUSAL_LM") -> LoraConfig:
    """Return the configuration of the options' adapter, and seed its random initialisation. Raises BadInput."""
    torch.manual_seed(options.seed)
    return LoraConfig(
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        target_modules=lora_targets(base, options.lora_targets),
        task_type=kind,
    )


class PrismTrainer(WholeSteps, Trainer):  # type: ignore[misc]
    """transformers' trainer with the steps of WholeSteps."""


def label_states(model: Any, rows: Sequence[PrismRow], pad: int, *, packed: bool = False) -> Tensor:
    """Return the decoder's last states at all label positions, row by row; shape (sum of positions, hidden size)."""
    decoder = model.get_base_model().get_decoder()
    device = next(model.parameters()).device
    if packed:
        # Rows in one sequence; each starts from position 0, which keeps attention within the row.
        ids = torch.tensor([[token for row in rows for token in row.ids]], device=device)
        positions = torch.tensor([[position for row in rows for position in range(len(row.ids))]], device=device)
        inputs = {"position_ids": positions}
        begins = [(0, begin) for begin in accumulate((len(row.ids) for row in rows[:-1]), initial=0)]
    else:
        # Padded on the right, which a causal model does not attend to.
        ids, mask = pad_rows([row.ids for row in rows], pad, device)
        inputs = {"attention_mask": mask}
        begins = [(line, 0) for line in range(len(rows))]
    is_label = torch.zeros_like(ids, dtype=torch.bool)
    for row, (line, begin) in zip(rows, begins, strict=True):
        is_label[line, begin + row.label_positions.start : begin + row.label_positions.stop] = True
    states: Tensor = decoder(input_ids=ids, use_cache=False, **inputs).last_hidden_state[is_label]
    return states


class OutputHead(AnswerHead):
    """The output layer of a causal model, applied to states: for two tokens, or in tiles for the whole vocabulary."""

    def entropies(self, states: Tensor, answers: Tensor) -> Tensor:
        """Return the cross-entropy of each answer token in fp32; logits are recomputed in the backward pass."""

        def tile_entropies(tile_states: Tensor, tile_answers: Tensor) -> Tensor:
            logits = self.bound(self.output(tile_states.to(self.output.weight.dtype)).float() * self.scale)
            return functional.cross_entropy(logits, tile_answers, reduction="none")

        tiles = zip(torch.split(states, TILE), torch.split(answers, TILE), strict=True)
        return torch.cat([checkpoint(tile_entropies, *tile, use_reentrant=False) for tile in tiles])


def prism_losses(head: OutputHead, states: Tensor, rows: Sequence[PrismRow], reduction: str) -> dict[str, Tensor]:
    """Return the sums over rows of (sigmoid(margin) - teacher)^2 and of the cross-entropy.

    `states` come from label_states; `reduction`: sum or mean over a row's tokens.
    """
    sizes = [len(row.label_positions) for row in rows]
    device = states.device
    firsts = torch.tensor([0, *sizes[:-1]], device=device).cumsum(0)
    teacher = torch.tensor([row.teacher for row in rows], device=device)
    has_point = torch.tensor([row.point for row in rows], device=device)
    point = ((torch.sigmoid(head.compare(states[firsts])) - teacher) ** 2 * has_point).sum()
    text_sizes = [size for row, size in zip(rows, sizes, strict=True) for _ in row.label_positions if row.sft]
    if not text_sizes:
        # Zero but part of the graph, so that a step can add up both losses in every pass.
        return {"point": point, "sft": states.float().sum() * 0.0}
    is_text = torch.tensor([row.sft for row in rows for _ in row.label_positions], device=device)
    answers = torch.tensor([token for row in rows if row.sft for token in row.ids[row.start :]], device=device)
    entropies = head.entropies(states[is_text], answers)
    if reduction == "mean":
        entropies = entropies / torch.tensor(text_sizes, device=device)
    return {"point": point, "sft": entropies.sum()}
