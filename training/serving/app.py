"""The WSGI application of a reranker: POST /v1/rerank (and /v2/rerank, where Cohere's newer client asks)."""

from dataclasses import replace
from typing import Any

from corpus.evidence import measures
from training.serving import protocol
from training.serving.base import PATIENCE_S, Service
from training.serving.batcher import Batcher
from training.serving.protocol import ServingRequest
from training.serving.scorer import Scorer


class Rerank(Service):
    """A scorer that answers several requests together."""

    addresses = ("/v1/rerank", "/v2/rerank")

    def __init__(self, scorer: Scorer, name: str, *, token: str = "", limit: int = 32) -> None:
        super().__init__(name, scorer.words, token=token, limit=limit)
        self.scorer = scorer
        self.batcher = Batcher(scorer, limit)

    def answer(self, body: bytes) -> tuple[int, dict[str, Any]]:
        request = protocol.read_request(body)
        margins = self.batcher.submit(request).result(PATIENCE_S)
        # The raw margin decides, then the order in which they came: probabilities near 1 round to the same number.
        places = sorted(range(len(margins)), key=lambda place: (-margins[place], place))[: request.top_n]
        results: list[dict[str, Any]] = []
        for place in places:
            results.append({"index": place, "relevance_score": self.scorer.probability(margins[place])})
            if request.return_documents:
                given = request.given[place]
                results[-1]["document"] = given if isinstance(given, dict) else {"text": given}
        if request.return_evidence:
            # One thread has the model, so writing waits in the same queue as scoring.
            written = self.batcher.submit(lambda: [self.write(request, place) for place in places]).result(PATIENCE_S)
            results = [result | texts for result, texts in zip(results, written, strict=True)]
        words, threshold = self.scorer.words, self.scorer.threshold
        return 200, protocol.build_response(request, results, self.name, words, threshold)

    def write(self, request: ServingRequest, place: int) -> dict[str, str | bool]:
        """Return a document's contribution and evidence; both empty where the model says no, or writes something else.

        An answer that ran out of tokens keeps what was written, and says so: `finish_reason`, `evidence_truncated`.
        """
        said = self.scorer.write(replace(request, documents=[request.documents[place]]))[0]
        whole = measures.parse_output(said.text)
        output = measures.parse_output(measures.close_fields(said.text)) if said.is_cut else whole
        return {
            "contribution": output.contribution or "",
            "evidence": output.evidence or "",
            "finish_reason": "length" if said.is_cut else "stop",
            "evidence_truncated": said.is_cut and whole.verdict == 1 and whole.evidence is None,
        }
