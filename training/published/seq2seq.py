"""Scoring by a sequence-to-sequence reranker (monoT5): P(true) as the first word that its decoder would write.

The margin is l_true - l_false at that position, so sigmoid(margin) is the softmax over these two words only, as in
Nogueira, Jiang, Pradeep and Lin (2020).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corpus.errors import BadInput
from training.published.protocol import ServingRequest
from training.published.scorer import Scorer, choose_seq2seq
from training.recipes.rendering import SEQ2SEQ_ANSWERS

if TYPE_CHECKING:
    from training.published.tokens import EncodedRow


class Seq2SeqScorer(Scorer):
    """A model with encoder and decoder, scored by the first word of its answer."""

    def load(self, record: dict[str, Any], prompt: str) -> None:
        from transformers import AutoModelForSeq2SeqLM

        from training.published.base import dtype_of, load_tokenizer
        from training.published.encoder import longest_input
        from training.published.margins import PromptTokens

        def render(query: str, document: str, _instruction: str) -> str:
            return f"Query: {query} Document: {document} Relevant:"

        self.prompt_name = choose_seq2seq(self.folder, prompt)
        self.tokenizer = load_tokenizer(self.folder)
        answer_ids = []
        for answer in SEQ2SEQ_ANSWERS[self.prompt_name]:
            ids = self.tokenizer(answer, add_special_tokens=False)["input_ids"]
            if len(ids) != 1 or ids[0] == self.tokenizer.unk_token_id:
                raise BadInput(
                    f"The tokenizer has no token {answer!r}, which this prompt reads: take the model's own prompt"
                )
            answer_ids.append(int(ids[0]))
        true_id, false_id = answer_ids
        # Minus the end token of every input.
        length = longest_input(self.folder, self.tokenizer) - 1
        self.prompt = PromptTokens(render, true_id, false_id, length)
        model: Any = AutoModelForSeq2SeqLM.from_pretrained(self.folder, dtype=dtype_of(self.precision))
        self.model = model.to(self.device).eval()

    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        pairs = [(request.query, document, "") for document in request.documents]
        with self.lock:
            rows = self.prompt.encode(self.tokenizer, pairs, document_tokens=request.document_tokens)
        return [row._replace(ids=[*row.ids, self.tokenizer.eos_token_id]) for row in rows]

    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        import torch

        from training.published.margins import map_batches, pad_rows

        def score(batch: "list[EncodedRow]") -> list[float]:
            ids, mask = pad_rows([row.ids for row in batch], self.tokenizer.pad_token_id, self.model.device)
            starts = torch.full((len(batch), 1), self.model.config.decoder_start_token_id, device=self.model.device)
            with torch.inference_mode():
                logits = self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=starts).logits[:, 0].float()
            return list((logits[:, self.prompt.yes_id] - logits[:, self.prompt.no_id]).tolist())

        return map_batches(rows, score, self.budget)
