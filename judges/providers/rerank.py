"""A reranker as a judge: the endpoint of `serve_model`, or another that speaks the same form (MECHANICS M10)."""

import json
from typing import Any

from judges.providers.base import SdkProvider
from judges.providers.replies import count, get, text
from judges.records import Judge, Rejected, Reply, Request, Usage

THRESHOLD = 0.5


class RerankProvider(SdkProvider):
    """POST <base_url>/rerank with one document. It votes: yes where the score reaches the threshold."""

    async def send(self, request: Request) -> object:
        """One POST; the prompt is not sent: a reranker has its own."""
        if request.role in ("for", "against", "adjudicate"):
            raise Rejected(f"{request.judge.name} is a reranker: it votes and cannot argue")
        body = {
            "model": request.judge.model,
            "query": request.inputs.query,
            "documents": [document(request)],
            "top_n": 1,
            "instruction": request.inputs.instruction,
        }
        return await self.http.post(f"{self.base_url}/rerank", json=body)

    def read(self, body: dict[str, Any], raw: str, judge: Judge) -> Reply | None:
        """The score of the one document as a verdict, with its probability."""
        score = get(body, "results", 0, "relevance_score")
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            return None
        threshold = float(judge.parameters.get("threshold", _threshold(body)))
        said = "yes" if score >= threshold else "no"
        reason = f"Relevance {score:.3f}, threshold {threshold:.3f}."
        return Reply(
            raw=raw,
            text=json.dumps({"reason": reason, "response": said}),
            finish_reason="stop",
            usage=Usage(input=count(body, "usage", "total_tokens")),
            model=text(body.get("model"), 200),
            probabilities={"yes": float(score), "no": 1.0 - float(score)},
        )


def document(request: Request) -> str:
    """Title and text, as the reranker was trained on them."""
    inputs = request.inputs
    return f"{inputs.title}\n{inputs.document}" if inputs.title else inputs.document


def _threshold(body: dict[str, Any]) -> float:
    """The model's own, where the endpoint says it."""
    found = get(body, "meta", "threshold")
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else THRESHOLD
