"""Raw fp32 margins and generated answers with transformers, in batches that fit into memory."""

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

BATCH_TOKENS = 8192  # Tokens of one forward pass, padding included.

Result = TypeVar("Result")


class HasTokens(Protocol):
    """A row of tokens."""

    @property
    def ids(self) -> list[int]: ...


Row = TypeVar("Row", bound=HasTokens)


@dataclass(frozen=True)
class PromptTokens:
    """A prompt for pairs: render(query, document, instruction), the ids of "yes" and "no", the maximum length."""

    render: Callable[[str, str, str], str]
    yes_id: int
    no_id: int
    max_length: int

    @property
    def tail(self) -> str:
        """The text after the document, which is kept when the document is cut."""
        # No prompt contains this mark, so the text after it is the tail.
        mark = "\x01d\x01"
        return self.render("q", mark, "").partition(mark)[2]

    def encode(
        self, tokenizer: Any, rows: Sequence[tuple[str, str, str]], *, document_tokens: int = 0
    ) -> list[EncodedRow]:
        """Return rows of (query, document, instruction) as tokens.

        `document_tokens`: the most tokens of a document, 0 for no limit.
        """
        parted = part_controls(tokenizer, [text for row in rows for text in row])
        was_cut = [False] * len(rows)
        if document_tokens:
            parted[1::3], was_cut = cut_texts(tokenizer, parted[1::3], document_tokens)
        texts = [self.render(*parted[begin : begin + 3]) for begin in range(0, len(parted), 3)]
        max_length, tail = self.max_length, self.tail
        return [
            EncodedRow(truncate_ids(ids, tokenizer, max_length, tail), cut or len(ids) > max_length, (row[0], row[2]))
            for ids, cut, row in zip(encode_parted(tokenizer, texts), was_cut, rows, strict=True)
        ]

    def margins(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[float]:
        """Return the raw fp32 margins of rows with query, document and instruction."""
        encoded = self.encode(tokenizer, [(row.query, row.document, row.instruction) for row in rows])
        return causal_margins(AnswerHead(model, self.yes_id, self.no_id), encoded)


class AnswerHead:
    """The margin l_yes - l_no, computed from a decoder's last states without the logits of the whole vocabulary."""

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
        # Only two rows of the output layer: for 248,000 tokens, the logits of a batch would take gigabytes.
        self.weight = output.weight.detach()[[yes_id, no_id]].float()
        bias = getattr(output, "bias", None)
        self.bias = None if bias is None else bias.detach()[[yes_id, no_id]].float()
        # Gemma caps its logits, Granite and Cohere scale them.
        self.softcap = getattr(self.config, "final_logit_softcapping", None)
        self.scale = float(getattr(self.config, "logit_scale", None) or 1.0)
        self.scale /= float(getattr(self.config, "logits_scaling", None) or 1.0)

    def margins(self, states: Tensor) -> list[float]:
        """Return the margins of states; `states` has the shape (rows, hidden)."""
        return list(self.compare(states).tolist())

    def compare(self, states: Tensor) -> Tensor:
        """Return the margins of states in fp32, as a tensor with a gradient."""
        # Not a matrix product, and no autocast, since TF32 and bf16 would round the states.
        with torch.autocast(states.device.type, enabled=False):
            states = states.float()
            if self.softcap is None:
                # The product with the difference of the rows equals the difference of the products.
                margins: Tensor = (states * (self.weight[0] - self.weight[1])).sum(-1) * self.scale
                return margins if self.bias is None else margins + self.scale * (self.bias[0] - self.bias[1])
            logits = torch.stack([(states * weight).sum(-1) for weight in self.weight], dim=-1) * self.scale
            logits = self.bound(logits if self.bias is None else logits + self.bias)
            return logits[:, 0] - logits[:, 1]

    def bound(self, logits: Tensor) -> Tensor:
        """Return the logits, capped if the model does so."""
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)


def causal_margins(head: AnswerHead, rows: Sequence[EncodedRow], budget: int = BATCH_TOKENS) -> list[float]:
    """Return l_yes - l_no at the last token of each row, in order."""

    def score(batch: list[EncodedRow]) -> list[float]:
        # Padded on the right, which a causal model does not attend to.
        ids, mask = pad_rows([row.ids for row in batch], 0, head.device)
        with torch.inference_mode():
            states = head.decoder(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
            return head.margins(states[torch.arange(len(batch)), mask.sum(1) - 1])

    return map_batches(rows, score, budget)


def encode_pairs(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], *, max_length: int, document_tokens: int = 0
) -> list[EncodedRow]:
    """Return pairs of (query, document) as an encoder's tokens; the longer of the two is cut first."""
    if not pairs:
        return []
    queries, documents = [query for query, _document in pairs], [document for _query, document in pairs]
    was_cut = [False] * len(pairs)
    if document_tokens:
        documents, was_cut = cut_texts(tokenizer, documents, document_tokens)
    # A [SEP] in a text is encoded as plain text; the tokenizer adds those of the pair.
    encode = partial(tokenizer, split_special_tokens=True, verbose=False)
    encoded = encode(queries, documents)
    ids, types = encoded["input_ids"], encoded.get("token_type_ids") or [None] * len(pairs)
    # Only pairs that are too long are encoded with truncation, which is slow.
    for pair in [pair for pair, pair_ids in enumerate(ids) if len(pair_ids) > max_length]:
        short = encode(queries[pair], documents[pair], truncation="longest_first", max_length=max_length)
        ids[pair], types[pair], was_cut[pair] = short["input_ids"], short.get("token_type_ids"), True
    return [
        EncodedRow(pair_ids, cut, types=pair_types)
        for pair_ids, cut, pair_types in zip(ids, was_cut, types, strict=True)
    ]


def encoder_margins(model: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]], *, max_length: int) -> list[float]:
    """Return the logit of a sequence classifier with one label for each (query, document)."""
    return score_encoded(model, tokenizer, encode_pairs(tokenizer, pairs, max_length=max_length))


def score_encoded(model: Any, tokenizer: Any, rows: Sequence[EncodedRow], budget: int = BATCH_TOKENS) -> list[float]:
    """Return the logit of a sequence classifier with one label for each row."""

    def score(batch: list[EncodedRow]) -> list[float]:
        with torch.inference_mode():
            logits = model(**pad_encoded(tokenizer, batch).to(model.device)).logits
        return list(logits.float().reshape(len(batch)).tolist())

    return map_batches(rows, score, budget)


def pad_encoded(tokenizer: Any, rows: Sequence[EncodedRow]) -> Any:
    """Return an encoder's rows as one batch of tensors."""
    columns: dict[str, Any] = {"input_ids": [row.ids for row in rows]}
    # Some models have no token types, and refuse them.
    columns |= {"token_type_ids": [row.types for row in rows]} if rows[0].types is not None else {}
    return tokenizer.pad(columns, return_tensors="pt")


def write_answers(
    model: Any, tokenizer: Any, rows: Sequence[Row], max_new_tokens: int, *, temperature: float | None = None
) -> list[list[int]]:
    """Return the tokens of an answer to each row, in order, with the end token if the answer reached one.

    Answers are greedy, or with a temperature sampled from the whole distribution by torch's random generator.
    """
    ends = generation_ends(model, tokenizer)
    pad = int(ends[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id)
    sampling = {"do_sample": False} if temperature is None else {
        "do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0,
    }  # fmt: skip
    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new_tokens, eos_token_id=ends, pad_token_id=pad, use_cache=True, **sampling
    )

    def write(batch: list[Row]) -> list[list[int]]:
        # Padded on the left, since the answer must directly follow its prompt.
        ids, mask = pad_rows([row.ids for row in batch], pad, model.device, side="left")
        with torch.inference_mode():
            sequences = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        answers = sequences[:, ids.shape[1] :].tolist()
        # Up to the first end token; what follows is padding.
        return [
            next((answer[:length] for length, token in enumerate(answer, 1) if token in ends), answer)
            for answer in answers
        ]

    return map_batches(rows, write, extra_tokens=max_new_tokens)


def generate_answers(
    model: Any, tokenizer: Any, rows: Sequence[EncodedRow], *, max_new_tokens: int
) -> list[RenderedPair]:
    """Return the greedy answer of a causal reranker to each row, cut after max_new_tokens."""
    answers, ends = write_answers(model, tokenizer, rows, max_new_tokens), generation_ends(model, tokenizer)
    texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
    # An answer without an end token was cut.
    return [RenderedPair(str(text), ids[-1] not in ends) for text, ids in zip(texts, answers, strict=True)]


def map_batches(
    rows: Sequence[Row],
    act: Callable[[list[Row]], Sequence[Result]],
    budget: int = BATCH_TOKENS,
    extra_tokens: int = 0,
) -> list[Result]:
    """Return the result of `act` for each row, in order; it is called with batches of rows of similar length.

    A batch has at most `budget` tokens, counting `extra_tokens` for each row, and is halved when memory runs out.
    Raises BadInput if memory runs out for a single row.
    """
    results: dict[int, Result] = {}
    for batch in pack_batches([len(row.ids) + extra_tokens for row in rows], budget):
        results.update(zip(batch, act_in_halves([rows[index] for index in batch], act), strict=True))
    return [results[index] for index in range(len(rows))]


def act_in_halves(rows: list[Row], act: Callable[[list[Row]], Sequence[Result]]) -> list[Result]:
    """Return the results of `act` for rows, called with halves of them when memory runs out."""
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
    # After the handler, since the error refers to frames with the tensors that did not fit.
    free_memory()
    half = len(rows) // 2
    return [*act_in_halves(rows[:half], act), *act_in_halves(rows[half:], act)]


def pad_rows(rows: Sequence[list[int]], pad: int, device: Any, side: str = "right") -> tuple[Tensor, Tensor]:
    """Return padded token ids and their attention mask, both of the shape (rows, longest row)."""
    tensors = [torch.tensor(row) for row in rows]
    ids = pad_sequence(tensors, batch_first=True, padding_value=pad, padding_side=side)
    mask = pad_sequence([torch.ones_like(tensor) for tensor in tensors], batch_first=True, padding_side=side)
    return ids.to(device), mask.to(device)
