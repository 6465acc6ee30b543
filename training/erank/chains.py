"""Answers of a model that thinks and then scores: prompts as tokens, writing, and how sure it was (ERank 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from judges.domain.chains import HIGHEST, parse_answer
from training.recipes.erank_prompt import TAIL, render_chain_prompt
from training.recipes.rendering import END
from training.trainers.margins import map_batches, pad_rows, write_answers
from training.trainers.tokens import EncodedRow, cut_texts, encode_parted, part_controls, truncate_ids

MALFORMED = -1.0  # The ranking score of an answer without one: below every s x P(s).
# Margins are ranking scores around the middle of the scale, so that 0 divides as it does for other rerankers.
MIDDLE = HIGHEST / 2
END_TOKENS = 24  # The score's digits are among the last tokens of an answer.


class GeneratedScore(NamedTuple):
    """A sampled answer: its text, score (None: malformed), probability of the score's tokens, and all its tokens."""

    text: str
    score: int | None
    probability: float
    ids: list[int]

    @property
    def ranking_score(self) -> float:
        """Return s x P(s); MALFORMED without a score."""
        return MALFORMED if self.score is None else self.score * self.probability

    @property
    def margin(self) -> float:
        return self.ranking_score - MIDDLE


@dataclass(frozen=True)
class ChainPrompt:
    """The prompt of pairs: the longest prompt and the longest answer, in tokens."""

    max_prompt: int
    max_response: int

    def encode(self, tokenizer: Any, rows: Sequence[Any], *, document_tokens: int = 0) -> list[EncodedRow]:
        """Return prompts of rows, one too long without its document's end; `document_tokens`: at most, 0 for any."""
        is_short = [False] * len(rows)
        if document_tokens:
            texts, is_short = cut_texts(tokenizer, [row.document for row in rows], document_tokens)
            rows = [replace(row, document=text) for row, text in zip(rows, texts, strict=True)]
        ids = encode_chain_prompts(tokenizer, rows)
        return [
            EncodedRow(truncate_ids(one, tokenizer, self.max_prompt, TAIL), was_cut or len(one) > self.max_prompt)
            for one, was_cut in zip(ids, is_short, strict=True)
        ]

    def write_scores(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[GeneratedScore]:
        """Return one greedy answer for each row, in their order."""
        return self.answer(model, tokenizer, self.encode(tokenizer, rows))

    def answer(self, model: Any, tokenizer: Any, prompts: Sequence[EncodedRow]) -> list[GeneratedScore]:
        """Return one greedy answer to each prompt, in their order."""
        return measure_answers(model, tokenizer, prompts, write_answers(model, tokenizer, prompts, self.max_response))

    def margins(self, model: Any, tokenizer: Any, rows: Sequence[Any]) -> list[float]:
        """Return the margins of greedy answers."""
        return [one.margin for one in self.write_scores(model, tokenizer, rows)]


def encode_chain_prompts(tokenizer: Any, rows: Sequence[Any]) -> list[list[int]]:
    """Return prompts as tokens, as long as they are; control tokens in the texts stay text."""
    parted = iter(part_controls(tokenizer, [text for r in rows for text in (r.query, r.document, r.instruction)]))
    return encode_parted(tokenizer, [render_chain_prompt(next(parted), next(parted), next(parted)) for _ in rows])


def answer_text(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return an answer without its end. Tags may be special tokens: they stay."""
    ends = {tokenizer.convert_tokens_to_ids(END), tokenizer.eos_token_id, tokenizer.pad_token_id}
    kept = ids[:-1] if ids and ids[-1] in ends else ids
    return str(tokenizer.decode(kept, skip_special_tokens=False))


def measure_answers(
    model: Any, tokenizer: Any, prompts: Sequence[EncodedRow], answers: Sequence[list[int]]
) -> list[GeneratedScore]:
    """Return answers with score and P(s): the score tokens' product, not renormalised."""
    texts = [answer_text(tokenizer, ids) for ids in answers]
    scores = [parse_answer(text) for text in texts]
    places = [
        [] if score is None else score_places(tokenizer, ids, text, score)
        for ids, text, score in zip(answers, texts, scores, strict=True)
    ]
    rows = [
        AnsweredRow([*prompt.ids, *ids[: kept[-1] + 1]], len(kept))
        for prompt, ids, kept in zip(prompts, answers, places, strict=True)
        if kept
    ]
    held = iter(probabilities_at_end(model, tokenizer, rows))
    chances = [next(held) if kept else 0.0 for kept in places]
    return [GeneratedScore(*one) for one in zip(texts, scores, chances, answers, strict=True)]


class AnsweredRow(NamedTuple):
    """A prompt with its answer up to the score; the answer's tokens are the last `held`."""

    ids: list[int]
    held: int


def score_places(tokenizer: Any, ids: Sequence[int], text: str, score: int) -> list[int]:
    """Return the places of the score's digits, which stand near the answer's end."""
    # The last <answer>: the chain before it may speak of one.
    begin = text.index(str(score), text.rindex("<answer>") + len("<answer>"))
    end = begin + len(str(score))
    first = max(0, len(ids) - END_TOKENS)
    # A token's share of the text is found by decoding with and without it, since bytes of a letter may be split.
    offsets = [len(answer_text(tokenizer, ids[:place])) for place in range(first, len(ids) + 1)]
    return [first + step for step, (low, high) in enumerate(pairwise(offsets)) if low < end and high > begin]


def probabilities_at_end(model: Any, tokenizer: Any, rows: Sequence[AnsweredRow]) -> list[float]:
    """Return the model's probability of the last `held` tokens of each row, in fp32."""
    # The id does not matter: padding stands behind the row, and no column that is read lies there.
    pad = int(tokenizer.pad_token_id or 0)

    def measure(batch: list[AnsweredRow]) -> list[float]:
        ids, mask = pad_rows([row.ids for row in batch], pad, model.device)
        # Only the columns that some row needs: logits of all positions would fill the memory.
        kept = sorted({len(row.ids) - back - 1 for row in batch for back in range(1, row.held + 1)})
        columns = {place: column for column, place in enumerate(kept)}
        with torch.inference_mode():
            at = torch.tensor(kept, device=ids.device)
            logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=at, use_cache=False).logits
        found = []
        for line, row in zip(logits, batch, strict=True):
            shares = [
                line[columns[len(row.ids) - back - 1]].float().log_softmax(-1)[row.ids[-back]]
                # The token at -back was predicted by the position before it.
                for back in range(1, row.held + 1)
            ]
            found.append(float(torch.stack(shares).sum().exp()))
        return found

    return map_batches(rows, measure)
