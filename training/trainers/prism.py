"""Recipe `prism`: the score before the answer and the text of the answer from one forward pass (P 3.2).

loss = 20 x (sigmoid(l_yes - l_no) - teacher)^2 + 1 x cross-entropy of the target text. Logits are computed at label
positions only: the token before the answer, and each token of the answer but the last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn import functional

from corpus.errors import BadInput
from training.jobs.folder import JobFolder
from training.recipes import rendering
from training.recipes.data import POINT, SFT, Example, check_for_prism
from training.recipes.table import TARGETS
from training.trainers.base import answer_ids, check_causal, check_end_token, load_model, load_tokenizer
from training.trainers.callback import place_in_world
from training.trainers.causal import LoraTrained
from training.trainers.loop import Loop
from training.trainers.margins import PromptTokens, pad_rows
from training.trainers.recipe import TrainingTask
from training.trainers.tokens import encode_texts
from training.trainers.world import World

# Bytes for each trained weight: itself, its gradient, and AdamW's two moments, in fp32.
OPTIMISER = 16
CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class PrismRow:
    """A row as tokens: ids of prompt and answer; the answer begins at `start`."""

    ids: list[int]
    start: int
    teacher: float
    point: bool
    sft: bool

    @property
    def label_positions(self) -> range:
        """The positions whose logits the loss reads."""
        return range(self.start - 1, len(self.ids) - 1 if self.sft else self.start)


class PrismRecipe:
    """`recipe.Recipe` of a causal base with a LoRA adapter. Raises BadInput for what it cannot train."""

    def __init__(self, task: TrainingTask) -> None:
        self.task, options = task, task.options
        if options.lora_rank < 1:
            raise BadInput("recipe prism trains an adapter: lora_rank must be 1 or more")
        check_for_prism(task.data)
        self.config = check_causal(task.base)
        if options.packing:
            check_packing(self.config)
        self.tokenizer = load_tokenizer(task.base)
        self.yes_id, self.no_id = answer_ids(self.tokenizer)
        self.end_id = check_end_token(self.tokenizer)
        self.rows = [self._row(one) for one in task.data.train if one.losses]
        self.weights = {"point": options.point_weight, "sft": options.sft_weight}
        answers = max(len(row.label_positions) for row in self.rows)
        check_memory(task, self.config, max(self.lengths()), answers)
        self.model = self._adapted()

    def _row(self, one: Example) -> PrismRow:
        sft = SFT in one.losses
        # What a target says stays text; the token that ends it is the only control.
        text = rendering.render_target(int(one.label or 0), one.target).removesuffix(rendering.END)
        answer = [*encode_texts(self.tokenizer, [text])[0], self.end_id] if sft else []
        room = self.task.options.max_length - len(answer)
        fitting = replace(self.prompt, max_length=room)
        whole, bare = fitting.encode(
            self.tokenizer, [(one.query, one.document, one.instruction), (one.query, "", one.instruction)]
        )
        if whole.is_cut and bare.is_cut:
            raise BadInput(
                f"query {one.query_id!r} with document {one.doc_id!r} does not fit into max_length "
                f"{self.task.options.max_length} even without its document: raise max_length"
            )
        prompt = whole.ids
        teacher = 0.0 if one.teacher is None else one.teacher
        return PrismRow([*prompt, *answer], len(prompt), teacher, POINT in one.losses, sft)

    def _adapted(self) -> Any:
        options = self.task.options
        base = load_model(self.task.base, self.task.device, self.task.dtype)
        if self.task.checkpointing:
            base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            # Nothing would be recomputed without it: the frozen embeddings give inputs that need no gradient.
            base.enable_input_require_grads()
        # LoRA's first matrices are random.
        torch.manual_seed(options.seed)
        names = {name.rpartition(".")[2] for name, part in base.named_modules() if isinstance(part, torch.nn.Linear)}
        targets = [name for name in TARGETS if name in names]
        if not targets:
            raise BadInput(f"{self.task.base_name} has none of the layers that get an adapter ({', '.join(TARGETS)})")
        lora = LoraConfig(
            r=options.lora_rank,
            lora_alpha=options.lora_alpha,
            lora_dropout=options.lora_dropout,
            target_modules=targets,
            task_type="CAUSAL_LM",
        )
        return get_peft_model(base, lora).train()

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        return Loop(folder, self.task, self, World(*place_in_world()), asked_to_stop).run()

    def lengths(self) -> list[int]:
        return [len(row.ids) for row in self.rows]

    def counts(self, rows: Sequence[int]) -> dict[str, int]:
        chosen = [self.rows[place] for place in rows]
        return {"point": sum(row.point for row in chosen), "sft": sum(row.sft for row in chosen)}

    def forward(self, model: torch.nn.Module, rows: Sequence[int]) -> dict[str, Tensor]:
        chosen = [self.rows[place] for place in rows]
        with torch.autocast(self.task.device, torch.bfloat16, enabled=self.task.precision == "bf16"):
            logits = label_logits(model, chosen, int(self.tokenizer.pad_token_id), packed=self.task.options.packing)
        return prism_losses(logits.float(), chosen, self.yes_id, self.no_id, self.task.options.sft_reduction)

    @property
    def prompt(self) -> PromptTokens:
        return PromptTokens(rendering.render_prompt, self.yes_id, self.no_id, self.task.options.max_length)

    def dev_margins(self, rows: Sequence[Example]) -> list[float]:
        self.model.eval()
        try:
            return self.prompt.margins(self.model, self.tokenizer, rows)
        finally:
            self.model.train()

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(str(folder))

    def load(self, folder: Path) -> None:
        from peft import set_peft_model_state_dict
        from safetensors.torch import load_file

        set_peft_model_state_dict(self.model, load_file(folder / "adapter_model.safetensors"))

    def trained(self, checkpoint: Path) -> LoraTrained:
        return LoraTrained(self.task.base, checkpoint, self.prompt, device=self.task.device)

    def record(self) -> dict[str, Any]:
        return {
            "kind": "causal",
            "prompt": rendering.prompt_text(),
            "prompt_sha256": rendering.prompt_sha256(),
            "yes_id": self.yes_id,
            "no_id": self.no_id,
            "max_length": self.task.options.max_length,
        }


def check_packing(config: Any) -> None:
    """Raise BadInput where rows in one sequence would see each other (linear attention keeps its state)."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds - {"full_attention", "sliding_attention"}:
        raise BadInput(
            f"packing is not exact on {config.model_type}: its {', '.join(sorted(kinds - {'full_attention'}))} layers "
            "carry what one row says into the next: leave packing off"
        )


def label_logits(model: torch.nn.Module, rows: Sequence[PrismRow], pad: int, *, packed: bool = False) -> Tensor:
    """Return the logits of all label positions, row after row: (sum of positions, vocabulary)."""
    device = next(model.parameters()).device
    # Padded on the right, where a causal model does not look, or one sequence whose positions begin anew.
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
    logits: Tensor = model(input_ids=ids, logits_to_keep=keep, use_cache=False, **shape).logits
    return logits


def prism_losses(
    logits: Tensor, rows: Sequence[PrismRow], yes_id: int, no_id: int, reduction: str
) -> dict[str, Tensor]:
    """Return the sums of (sigmoid(margin) - teacher)^2 and of cross-entropy (sum or mean over a row's tokens)."""
    sizes = [len(row.label_positions) for row in rows]
    firsts = torch.tensor([0, *sizes[:-1]], device=logits.device).cumsum(0)
    first = logits[firsts]
    margins = first[:, yes_id] - first[:, no_id]
    wanted = torch.tensor([row.teacher for row in rows], device=logits.device)
    has_point = torch.tensor([row.point for row in rows], device=logits.device)
    point = ((torch.sigmoid(margins) - wanted) ** 2 * has_point).sum()
    kept = [place for place, row in enumerate(rows) for _ in row.label_positions if row.sft]
    if not kept:
        # Zero, yet part of the graph, so that the loop can add up both parts of every pass.
        return {"point": point, "sft": logits.sum() * 0.0}
    own = torch.tensor([row.sft for row in rows for _ in row.label_positions], device=logits.device)
    answers = torch.tensor([one for row in rows if row.sft for one in row.ids[row.start :]], device=logits.device)
    tokens = functional.cross_entropy(logits[own], answers, reduction="none")
    if reduction == "mean":
        tokens = tokens / torch.tensor([sizes[place] for place in kept], device=logits.device)
    return {"point": point, "sft": tokens.sum()}


def needed_memory(task: TrainingTask, config: Any, longest: int, answer: int) -> int:
    """Return a lower bound in bytes: weights, adapter, activations of the longest row, logits of its answer."""
    size = 2 if task.dtype is torch.bfloat16 else 4
    weights = sum(path.stat().st_size for path in task.base.glob("*.safetensors"))
    hidden, layers = int(config.hidden_size), int(config.num_hidden_layers)
    wide = int(getattr(config, "intermediate_size", 4 * hidden))
    rank = task.options.lora_rank
    # A weight is taken for four bytes of its file: a file in half precision counts too low, never too high.
    trained = rank * layers * (8 * hidden + 3 * (hidden + wide)) if rank else weights // 4
    kept = hidden * (2 if task.checkpointing else 12) + (0 if task.checkpointing else 3 * wide)
    logits = answer * int(config.vocab_size) * 4 * 2
    return weights * size // 4 + trained * OPTIMISER + longest * layers * kept * size + logits


def available_memory(device: str) -> int:
    """Return the bytes that a new process may take: of the GPU, or of the machine within its limit."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    # A container's limit, which the machine's free memory knows nothing of.
    limits = [int(path.read_text()) for path in CGROUP if path.exists() and path.read_text().strip().isdigit()]
    return min([int(psutil.virtual_memory().available), *limits])


def check_memory(task: TrainingTask, config: Any, longest: int, answer: int) -> None:
    """Raise BadInput when the task cannot fit, with both numbers."""
    need = needed_memory(task, config, longest, answer)
    there = available_memory(task.device) if task.memory_mb is None else int(task.memory_mb * 2**20)
    if need > there:
        raise BadInput(
            f"this training needs at least {need / 2**30:.2f} GiB of {'GPU ' if task.device == 'cuda' else ''}memory "
            f"and {there / 2**30:.2f} GiB are free: take a smaller base, a smaller max_length or lora_rank, "
            "or a machine with more"
        )
