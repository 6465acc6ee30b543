"""A reranker as a judge and for runs, behind the endpoint of `serve_model` or a compatible one."""

import json
from typing import Any

from judges.errors import Rejected
from judges.providers.base import PostProvider
from judges.providers.received import Received
from judges.providers.replies import finite_number, get_count, get_list, get_path
from judges.records import Judge, ModelRequest, Reply, Usage

THRESHOLD = 0.5


class RerankProvider(PostProvider):
    """Provider for rerankers: POST <base_url>/rerank. The vote is "yes" if the score reaches the threshold."""

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
            body["return_evidence"] = True  # For `serve_model`; read from the raw answer (benchmark.runs.reranking).
        await self.post("rerank", body, request, received)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return a single document's score as a verdict with its probability, or several documents' scores by index."""
        results = get_list(body, "results")
        if len(results) > 1:
            scores: dict[str, float] = {}
            for result in results:
                index, score = get_path(result, "index"), finite_number(get_path(result, "relevance_score"))
                # None if a score is missing, or an index is repeated.
                if score is None or not isinstance(index, int) or isinstance(index, bool) or str(index) in scores:
                    return None
                scores[str(index)] = score
            tokens = get_count(body, "usage", "total_tokens") or get_count(body, "meta", "billed_units", "input_tokens")
            return Reply(json.dumps(scores), finish_reason="stop", usage=Usage(input=tokens))
        score = finite_number(get_path(body, "results", 0, "relevance_score"))
        if score is None or not 0 <= score <= 1:
            return None
        own_threshold = finite_number(get_path(body, "meta", "threshold"))  # The model's, if the endpoint reports it.
        threshold = float(judge.parameters.get("threshold", THRESHOLD if own_threshold is None else own_threshold))
        answer = "yes" if score >= threshold else "no"
        reason = f"Relevance {score:.3f}, threshold {threshold:.3f}."
        return Reply(
            text=json.dumps({"reason": reason, "response": answer}),
            finish_reason="stop",
            usage=Usage(input=get_count(body, "usage", "total_tokens")),
            probabilities={"yes": score, "no": 1.0 - score},
        )
