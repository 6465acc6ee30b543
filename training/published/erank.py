"""Scoring by a model of kind `erank`: it reasons, writes a score s, and documents rank by s x P(s) (ERank 3.2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judges.domain.chains import HIGHEST
from training.published.protocol import NEW_TOKENS, ServingRequest
from training.published.scorer import Scorer, other_prompt
from training.recipes.data import Example
from training.recipes.erank_prompt import chain_prompt_sha256, chain_prompt_text
from training.recipes.rendering import RenderedPair

if TYPE_CHECKING:
    from training.published.tokens import EncodedRow


class ErankScorer(Scorer):
    """A causal model that was trained on chains of reasoning."""

    prompt_name = "erank"
    # Scores are never below 0: without a shift, every document would be more likely relevant than not.
    middle = HIGHEST / 2

    def load(self, record: dict[str, Any], prompt: str) -> None:
        ours = chain_prompt_sha256()
        if record.get("prompt_sha256") != ours or record.get("prompt") != chain_prompt_text():
            raise other_prompt(self.folder, record, ours)
        from training.published.base import check_causal, load_tokenizer
        from training.published.causal import load_causal
        from training.published.chains import ChainPrompt

        check_causal(self.folder)
        self.tokenizer = load_tokenizer(self.folder)
        self.prompt = ChainPrompt(int(record["max_prompt"]), int(record["max_response"]))
        self.model = load_causal(self.folder, self.device, self.precision)

    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        rows = [Example(request.query, document, request.instruction) for document in request.documents]
        with self.lock:
            return self.prompt.encode(self.tokenizer, rows, document_tokens=request.document_tokens)

    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        """Return s x P(s) of the answer to each row, -1 if it has no score."""
        return [answer.ranking_score for answer in self.prompt.answer(self.model, self.tokenizer, rows)]

    def write(self, request: ServingRequest, max_new_tokens: int = NEW_TOKENS) -> list[RenderedPair]:
        """Return chain and score for each document."""
        from training.published.chains import answer_text
        from training.published.margins import write_answers

        rows = self.encode(request)
        answers = write_answers(self.model, self.tokenizer, rows, max_new_tokens)
        return [RenderedPair(answer_text(self.tokenizer, ids), len(ids) >= max_new_tokens) for ids in answers]

    def describe_margins(self, margins: Sequence[float]) -> str:
        from training.published.chains import MALFORMED

        malformed = sum(margin == MALFORMED for margin in margins)
        return (
            f"{malformed:,} of {len(margins):,} answers have no score: these documents rank last" if malformed else ""
        )
