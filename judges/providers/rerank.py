"""A reranker as a judge, and over runs: the endpoint of `serve_model` or one of its form."""

import json
from typing import Any

from judges.errors import Rejected
from judges.providers.base import PostProvider
from judges.providers.received import Received
from judges.providers.replies import finite_number, get_count, get_list, get_path
from judges.records import Judge, ModelRequest, Reply, Usage

THRESHOLD = 0.5


class RerankProvider(PostProvider):
    """Provider for rerankers: POST <base_url>/rerank. Its vote is "yes" where the score reaches the threshold."""

    async def send(self, request: ModelRequest, received: Received) -> None:
        if request.role not in ("vote", "generation", "filter", "check", "rank"):
            raise Rejected(f"{request.judge.name} is a reranker: it votes and ranks, and cannot argue or write")
        documents = list(request.documents) or [request.inputs.titled_document]
        body = {
            "model": request.judge.model,
            "query": request.inputs.query,
            "documents": documents,
            "top_n": len(documents),
            "instruction": request.inputs.relevance.statement,
        }
        if request.role == "rank" and request.judge.parameters.get("evidence"):
            body["return_evidence"] = True  # of `serve_model`; it stays in the raw answer (benchmark.runs.reranking)
        await self.post("rerank", body, request, received)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """The score of the one document as a verdict, with its probability; of several, their scores by place."""
        if len(get_list(body, "results")) > 1:
            return _ranking_reply(body)
        score = finite_number(get_path(body, "results", 0, "relevance_score"))
        if score is None or not 0 <= score <= 1:
            return None
        own = finite_number(get_path(body, "meta", "threshold"))  # the model's, where the endpoint says it
        threshold = float(judge.parameters.get("threshold", THRESHOLD if own is None else own))
        said = "yes" if score >= threshold else "no"
        reason = f"Relevance {score:.3f}, threshold {threshold:.3f}."
        return Reply(
            text=json.dumps({"reason": reason, "response": said}),
            finish_reason="stop",
            usage=Usage(input=get_count(body, "usage", "total_tokens")),
            probabilities={"yes": score, "no": 1.0 - score},
        )


def _ranking_reply(body: dict[str, Any]) -> Reply | None:
    """Return a score for each place, any scale; None for a repeated place or no score."""
    scores: dict[str, float] = {}
    for one in get_list(body, "results"):
        place, score = get_path(one, "index"), finite_number(get_path(one, "relevance_score"))
        if score is None or not isinstance(place, int) or isinstance(place, bool) or str(place) in scores:
            return None
        scores[str(place)] = score
    used = get_count(body, "usage", "total_tokens") or get_count(body, "meta", "billed_units", "input_tokens")
    return Reply(json.dumps(scores), finish_reason="stop", usage=Usage(input=used))
