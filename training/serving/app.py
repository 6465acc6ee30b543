"""The WSGI application of a reranker: POST /v1/rerank (and /v2/rerank, where Cohere's newer client asks)."""

from typing import Any

from corpus.evidence import measures
from training.serving import protocol
from training.serving.base import PATIENCE_S, Service
from training.serving.batcher import Batcher
from training.serving.protocol import ScoredTexts, ServingRequest
from training.serving.scorer import Scorer


class Rerank(Service):
    """A scorer that answers several requests together."""

    addresses = ("/v1/rerank", "/v2/rerank")

    def __init__(self, scorer: Scorer, name: str, *, token: str = "", limit: int = 32) -> None:
        super().__init__(name, scorer.words, token=token, limit=limit)
        self.scorer = scorer
        self.batcher = Batcher(scorer, limit)

    def answer(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Score, and write where that was asked for."""
        request = protocol.read_request(body)
        scored = self.batcher.submit(request).result(PATIENCE_S)
        written: dict[int, protocol.Extra] = {}
        if request.return_evidence:
            written = self.batcher.call(lambda: self.write(request, scored)).result(PATIENCE_S)
        return 200, protocol.build_response(
            request, scored, self.name, self.scorer.words, written, self.scorer.threshold
        )

    def write(self, request: ServingRequest, scored: ScoredTexts) -> dict[int, protocol.Extra]:
        """Contribution and evidence by place; both empty where the model says no, or writes something else.

        An answer that ran out of tokens keeps what was written, and says so: `finish_reason`, `evidence_truncated`.
        """
        found: dict[int, protocol.Extra] = {}
        for place in protocol.top_documents(request, scored):
            said = self.scorer.generate(request.query, request.documents[place], request.instruction)
            whole = measures.parse_output(said.text)
            output = measures.parse_output(measures.close_fields(said.text)) if said.is_cut else whole
            found[place] = {
                "contribution": output.contribution or "",
                "evidence": output.evidence or "",
                "finish_reason": "length" if said.is_cut else "stop",
                "evidence_truncated": said.is_cut and whole.verdict == 1 and whole.evidence is None,
            }
        return found
