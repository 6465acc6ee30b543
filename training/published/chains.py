"""Answers of a model that reasons and then scores: prompts, generation, probability of the score (ERank 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from judges.domain.chains import HIGHEST, parse_answer
from training.published.margins import map_batches, pad_rows, write_answers
from training.published.tokens import EncodedRow, cut_texts, encode_parted, part_controls, truncate_ids
from training.recipes.erank_prompt import TAIL, render_chain_prompt
from training.recipes.rendering import END

MALFORMED = -1.0  # The ranking score of an answer without a score: below every s x P(s).
# A margin is the ranking score minus the middle of the scale, so that 0 is the threshold as for other rerankers.
MIDDLE = HIGHEST / 2
END_TOKENS = 24  # The score's digits are searched for among the last tokens of an answer.


class GeneratedScore(NamedTuple):
    """An answer: its text, its score (None if malformed), the probability of the score's tokens, and all its tokens."""

    text: str
    score: int | None
    probability: float
    ids: list[int]

    @property
    def ranking_score(self) -> float:
        """s x P(s), or MALFORMED without a score."""
        return MALFORMED if self.score is None else self.score * self.probability

    @property
    def margin(self) -> float:
        return self.ranking_score - MIDDLE


@dataclass(frozen=True)
class ChainPrompt:
    """The prompt of a query and a document, limited to so many tokens in prompt and answer."""

    max_prompt: int
    max_response: int

    def encode(self, tokenizer: Any, rows: Sequence[Any], *, document_tokens: int = 0) -> list[EncodedRow]:
        """Return the prompts of rows; a prompt that is too long loses the end of its document.

        `document_tokens`: the most tokens of a document, 0 for no limit.
        """
        was_cut = [False] * len(rows)
        if document_tokens:
            texts, was_cut = cut_texts(tokenizer, [row.document for row in rows], document_tokens)
            rows = [replace(row, document=text) for row, text in zip(rows, texts, strict=True)]
        prompts = encode_chain_prompts(tokenizer, rows)
        return [
            EncodedRow(truncate_ids(ids, tokenizer, self.max_prompt, TAIL), cut or len(ids) > self.max_prompt)
            for ids, cut in zip(prompts, was_cut, strict=True)
        ]

    def write_scores(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[GeneratedScore]:
        """Return one greedy answer for each row, in order."""
        return self.answer(model, tokenizer, self.encode(tokenizer, rows))

    def answer(self, model: Any, tokenizer: Any, prompts: Sequence[EncodedRow]) -> list[GeneratedScore]:
        """Return one greedy answer to each prompt, in order."""
        return measure_answers(model, tokenizer, prompts, write_answers(model, tokenizer, prompts, self.max_response))

    def margins(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[float]:
        """Return the margins of greedy answers."""
        return [answer.margin for answer in self.write_scores(model, tokenizer, rows)]


def encode_chain_prompts(tokenizer: Any, rows: Sequence[Any]) -> list[list[int]]:
    """Return the tokens of untruncated prompts; control tokens in the rows' texts are encoded as plain text."""
    texts = [text for row in rows for text in (row.query, row.document, row.instruction)]
    parted = iter(part_controls(tokenizer, texts))
    return encode_parted(tokenizer, [render_chain_prompt(next(parted), next(parted), next(parted)) for _ in rows])


def answer_text(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the text of an answer without its end token, but with tags that are special tokens."""
    ends = {tokenizer.convert_tokens_to_ids(END), tokenizer.eos_token_id, tokenizer.pad_token_id}
    text_ids = ids[:-1] if ids and ids[-1] in ends else ids
    return str(tokenizer.decode(text_ids, skip_special_tokens=False))


def measure_answers(
    model: Any, tokenizer: Any, prompts: Sequence[EncodedRow], answers: Sequence[list[int]]
) -> list[GeneratedScore]:
    """Return answers with their scores s and P(s): the product of the score tokens' probabilities, not renormalised."""
    texts = [answer_text(tokenizer, ids) for ids in answers]
    scores = [parse_answer(text) for text in texts]
    positions = [
        [] if score is None else score_positions(tokenizer, ids, text, score)
        for ids, text, score in zip(answers, texts, scores, strict=True)
    ]
    rows = [
        ScoredSequence([*prompt.ids, *ids[: digits[-1] + 1]], len(digits))
        for prompt, ids, digits in zip(prompts, answers, positions, strict=True)
        if digits
    ]
    measured = iter(probabilities_at_end(model, tokenizer, rows))
    probabilities = [next(measured) if digits else 0.0 for digits in positions]
    return [GeneratedScore(*fields) for fields in zip(texts, scores, probabilities, answers, strict=True)]


class ScoredSequence(NamedTuple):
    """A prompt with its answer up to the score, whose digits are the last `score_tokens` tokens."""

    ids: list[int]
    score_tokens: int


def score_positions(tokenizer: Any, ids: Sequence[int], text: str, score: int) -> list[int]:
    """Return the positions of the tokens of a score's digits in an answer."""
    # After the last <answer>, since the reasoning before it may mention the tag.
    begin = text.index(str(score), text.rindex("<answer>") + len("<answer>"))
    end = begin + len(str(score))
    first = max(0, len(ids) - END_TOKENS)
    # Decoded with and without each token to find its characters, since one letter's bytes may span tokens.
    offsets = [len(answer_text(tokenizer, ids[:stop])) for stop in range(first, len(ids) + 1)]
    return [first + step for step, (low, high) in enumerate(pairwise(offsets)) if low < end and high > begin]


def probabilities_at_end(model: Any, tokenizer: Any, rows: Sequence[ScoredSequence]) -> list[float]:
    """Return the probability that the model gives to the score tokens of each row, in fp32."""
    # Any id will do: padding comes after the row, and its columns are not read.
    pad = int(tokenizer.pad_token_id or 0)

    def measure(batch: list[ScoredSequence]) -> list[float]:
        ids, mask = pad_rows([row.ids for row in batch], pad, model.device)
        # Only the positions that some row needs: the logits of all would fill the memory.
        positions = sorted({len(row.ids) - back - 1 for row in batch for back in range(1, row.score_tokens + 1)})
        columns = {position: column for column, position in enumerate(positions)}
        with torch.inference_mode():
            logits_to_keep = torch.tensor(positions, device=ids.device)
            logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=logits_to_keep, use_cache=False).logits
        probabilities = []
        for row_logits, row in zip(logits, batch, strict=True):
            log_probabilities = [
                row_logits[columns[len(row.ids) - back - 1]].float().log_softmax(-1)[row.ids[-back]]
                # The token at -back was predicted by the position before it.
                for back in range(1, row.score_tokens + 1)
            ]
            probabilities.append(float(torch.stack(log_probabilities).sum().exp()))
        return probabilities

    return map_batches(rows, measure)
