"""Raw fp32 margins and answers by plain transformers: what published folders are held to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig

from corpus.errors import BadInput
from training.published.base import generation_ends
from training.published.batching import pack_batches
from training.published.tokens import EncodedRow, cut_texts, encode_parted, part_controls, truncate_ids
from training.published.torch_memory import free_memory, is_out_of_memory
from training.recipes.rendering import RenderedPair

BATCH_TOKENS = 8192  # Of one forward pass, padding counted.
# What torch says on a CPU, where it has no error of its own for it.

Found = TypeVar("Found")


class HasTokens(Protocol):
    """A row of tokens."""

    @property
    def ids(self) -> list[int]: ...


Row = TypeVar("Row", bound=HasTokens)


@dataclass(frozen=True)
class PromptTokens:
    """The prompt of pairs: render(query, document, instruction), the ids of "yes" and "no", the longest input."""

    render: Callable[[str, str, str], str]
    yes_id: int
    no_id: int
    max_length: int

    @property
    def tail(self) -> str:
        """The part after the document, which truncation must keep."""
        # A mark that no prompt holds, to find what stands behind the document.
        mark = "\x01d\x01"
        return self.render("q", mark, "").partition(mark)[2]

    def encode(
        self, tokenizer: Any, rows: Sequence[tuple[str, str, str]], *, document_tokens: int = 0
    ) -> list[EncodedRow]:
        """Return (query, document, instruction) as tokens; `document_tokens`: a document's at most, 0 for any."""
        parted = part_controls(tokenizer, [text for row in rows for text in row])
        cut = [False] * len(rows)
        if document_tokens:
            parted[1::3], cut = cut_texts(tokenizer, parted[1::3], document_tokens)
        texts = [self.render(*parted[at : at + 3]) for at in range(0, len(parted), 3)]
        most, tail = self.max_length, self.tail
        return [
            EncodedRow(truncate_ids(ids, tokenizer, most, tail), is_cut or len(ids) > most, (row[0], row[2]))
            for ids, is_cut, row in zip(encode_parted(tokenizer, texts), cut, rows, strict=True)
        ]

    def margins(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[float]:
        """Return raw fp32 margins of rows with query, document and instruction."""
        encoded = self.encode(tokenizer, [(row.query, row.document, row.instruction) for row in rows])
        return causal_margins(AnswerHead(model, self.yes_id, self.no_id), encoded)


class AnswerHead:
    """The margin l_yes - l_no straight from a decoder's last states: no logits of a vocabulary are ever made."""

    def __init__(self, model: Any, yes_id: int, no_id: int) -> None:
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.config = base.config.get_text_config()
        self.decoder = base.get_decoder()
        self.device = base.device
        output = base.get_output_embeddings()
        if not isinstance(output, torch.nn.Linear) or type(output).__module__.startswith("peft"):
            raise BadInput(
                f"The output layer is a {type(output).__name__}, in which yes and no have no weights to read"
            )
        self.output = output
        # Two rows of the output layer: a batch's logits of 248,000 words are gigabytes.
        self.weight = output.weight.detach()[[yes_id, no_id]].float()
        bias = getattr(output, "bias", None)
        self.bias = None if bias is None else bias.detach()[[yes_id, no_id]].float()
        # Gemma bounds its logits, Granite and Cohere scale them.
        self.cap = getattr(self.config, "final_logit_softcapping", None)
        self.scale = float(getattr(self.config, "logit_scale", None) or 1.0)
        self.scale /= float(getattr(self.config, "logits_scaling", None) or 1.0)

    def margins(self, states: Tensor) -> list[float]:
        """Return the margins at states (rows, hidden)."""
        return list(self.compare(states).tolist())

    def compare(self, states: Tensor) -> Tensor:
        """Return the margins at states in fp32, with a gradient."""
        # No matrix product, no autocast: TF32 and bf16 would round the states.
        with torch.autocast(states.device.type, enabled=False):
            states = states.float()
            if self.cap is None:
                # One product with the rows' difference, which is the products' difference.
                found: Tensor = (states * (self.weight[0] - self.weight[1])).sum(-1) * self.scale
                return found if self.bias is None else found + self.scale * (self.bias[0] - self.bias[1])
            logits = torch.stack([(states * weight).sum(-1) for weight in self.weight], dim=-1) * self.scale
            logits = self.bound(logits if self.bias is None else logits + self.bias)
            return logits[:, 0] - logits[:, 1]

    def bound(self, logits: Tensor) -> Tensor:
        """Return logits within the bounds that the model has for them."""
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


def causal_margins(head: AnswerHead, rows: Sequence[EncodedRow], budget: int = BATCH_TOKENS) -> list[float]:
    """Return l_yes - l_no at the last token of each row, in the order given."""

    def score(some: list[EncodedRow]) -> list[float]:
        # Padded on the right, where a causal model does not look.
        ids, mask = pad_rows([row.ids for row in some], 0, head.device)
        with torch.inference_mode():
            states = head.decoder(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
            return head.margins(states[torch.arange(len(some)), mask.sum(1) - 1])

    return map_batches(rows, score, budget)


def encode_pairs(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], *, max_length: int, document_tokens: int = 0
) -> list[EncodedRow]:
    """Return an encoder's rows of (query, document); the longer of the two is cut first."""
    if not pairs:
        return []
    left, right = [query for query, _ in pairs], [text for _, text in pairs]
    cut = [False] * len(pairs)
    if document_tokens:
        right, cut = cut_texts(tokenizer, right, document_tokens)
    # What looks like [SEP] in a text stays text: the tokenizer itself puts those of the pair.
    encode = partial(tokenizer, split_special_tokens=True, verbose=False)
    found = encode(left, right)
    ids, types = found["input_ids"], found.get("token_type_ids") or [None] * len(pairs)
    # Cut only where it is too long: the tokenizer's truncation is slow and most rows fit.
    for place in [place for place, one in enumerate(ids) if len(one) > max_length]:
        short = encode(left[place], right[place], truncation="longest_first", max_length=max_length)
        ids[place], types[place], cut[place] = short["input_ids"], short.get("token_type_ids"), True
    return [EncodedRow(one, is_cut, types=kinds) for one, is_cut, kinds in zip(ids, cut, types, strict=True)]


def encoder_margins(model: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]], *, max_length: int) -> list[float]:
    """Return a sequence classifier's one logit for each (query, document)."""
    return score_encoded(model, tokenizer, encode_pairs(tokenizer, pairs, max_length=max_length))


def score_encoded(model: Any, tokenizer: Any, rows: Sequence[EncodedRow], budget: int = BATCH_TOKENS) -> list[float]:
    """Return a sequence classifier's one logit for each row."""

    def score(some: list[EncodedRow]) -> list[float]:
        with torch.inference_mode():
            logits = model(**pad_encoded(tokenizer, some).to(model.device)).logits
        return list(logits.float().reshape(len(some)).tolist())

    return map_batches(rows, score, budget)


def pad_encoded(tokenizer: Any, rows: Sequence[EncodedRow]) -> Any:
    """Return an encoder's rows as one batch of tensors."""
    chosen: dict[str, Any] = {"input_ids": [row.ids for row in rows]}
    # Models without token types must not be given any.
    chosen |= {"token_type_ids": [row.types for row in rows]} if rows[0].types is not None else {}
    return tokenizer.pad(chosen, return_tensors="pt")


def write_answers(
    model: Any, tokenizer: Any, rows: Sequence[Row], max_new_tokens: int, *, temperature: float | None = None
) -> list[list[int]]:
    """Return the tokens of an answer to each row, its end included where it came to one, in the order given.

    Greedy; with a temperature each is sampled from the whole distribution, by torch's random numbers.
    """
    ends = generation_ends(model, tokenizer)
    pad = int(ends[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id)
    sampling = {"do_sample": False} if temperature is None else {
        "do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0,
    }  # fmt: skip
    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new_tokens, eos_token_id=ends, pad_token_id=pad, use_cache=True, **sampling
    )

    def write(some: list[Row]) -> list[list[int]]:
        # Padded on the left: the answer must follow its prompt at once.
        ids, mask = pad_rows([row.ids for row in some], pad, model.device, side="left")
        with torch.inference_mode():
            written = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        answers = written[:, ids.shape[1] :].tolist()
        # Up to its first end, without what the batch padded it with.
        return [next((one[: at + 1] for at, token in enumerate(one) if token in ends), one) for one in answers]

    return map_batches(rows, write, room=max_new_tokens)


def generate_answers(
    model: Any, tokenizer: Any, rows: Sequence[EncodedRow], *, max_new_tokens: int
) -> list[RenderedPair]:
    """Return what a causal reranker writes after each row, greedily, cut after max_new_tokens."""
    answers, ends = write_answers(model, tokenizer, rows, max_new_tokens), generation_ends(model, tokenizer)
    texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
    # Without an end token in what was written it was cut.
    return [RenderedPair(str(text), ids[-1] not in ends) for text, ids in zip(texts, answers, strict=True)]


def map_batches(
    rows: Sequence[Row],
    act: Callable[[list[Row]], Sequence[Found]],
    budget: int = BATCH_TOKENS,
    room: int = 0,
) -> list[Found]:
    """Return what `act` gives for each row, called on batches of similar length; `room`: further tokens of each row.

    Where memory runs out, a batch is halved. Raises BadInput when it runs out for one row.
    """
    found: dict[int, Found] = {}
    for places in pack_batches([len(row.ids) + room for row in rows], budget):
        found.update(zip(places, act_in_halves([rows[place] for place in places], act), strict=True))
    return [found[place] for place in range(len(rows))]


def act_in_halves(rows: list[Row], act: Callable[[list[Row]], Sequence[Found]]) -> list[Found]:
    """Return what `act` gives for rows, in halves of them where memory runs out."""
    try:
        return list(act(rows))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(rows) == 1:
            raise BadInput(
                f"A row of {len(rows[0].ids):,} tokens alone takes more memory than there is: take a smaller model, "
                "bf16, or shorter documents"
            ) from None
    # Outside the handler: the error holds the frames, and these hold what does not fit.
    free_memory()
    half = len(rows) // 2
    return [*act_in_halves(rows[:half], act), *act_in_halves(rows[half:], act)]


def pad_rows(rows: Sequence[list[int]], pad: int, device: Any, side: str = "right") -> tuple[Tensor, Tensor]:
    """Return token ids and their attention mask, both (rows, longest row)."""
    parts = [torch.tensor(row) for row in rows]
    ids = pad_sequence(parts, batch_first=True, padding_value=pad, padding_side=side)
    mask = pad_sequence([torch.ones_like(part) for part in parts], batch_first=True, padding_side=side)
    return ids.to(device), mask.to(device)
