"""Wire formats of the rerank APIs of Cohere, Jina and Voyage. Pure."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judges.errors import BadAnswer


@dataclass(frozen=True, slots=True)
class Api:
    """The wire format of an API: its address, and the fields of requests and answers."""

    name: str
    home: str
    path: str
    key_env: str
    top: str  # Name of the field with the number of results.
    results: str  # Name of the field with the results.
    extra: tuple[tuple[str, Any], ...] = ()  # Further fields of requests.

    def address(self, base: str) -> str:
        """Return the address of calls. `base`: an address with or without the version and the path; empty: `home`."""
        base = (base or self.home).rstrip("/")
        if base.endswith("/rerank"):
            return base
        if base.rpartition("/")[2] in {"v1", "v2"}:
            return f"{base}/rerank"
        return base + self.path

    def body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """Return the request for the scores of a query's documents."""
        fields: dict[str, Any] = {"model": model, "query": query, "documents": list(documents)}
        return {**fields, self.top: len(documents), **dict(self.extra)}


_SCORES_ONLY = ("return_documents", False)
_CUT = ("truncation", True)
_ALL = (
    Api("cohere", "https://api.cohere.com", "/v2/rerank", "COHERE_API_KEY", "top_n", "results"),
    Api("jina", "https://api.jina.ai", "/v1/rerank", "JINA_API_KEY", "top_n", "results", (_SCORES_ONLY,)),
    Api("voyage", "https://api.voyageai.com", "/v1/rerank", "VOYAGE_API_KEY", "top_k", "data", (_SCORES_ONLY, _CUT)),
)
APIS = {api.name: api for api in _ALL}


def scores_of(api: Api, raw: str, documents: int) -> dict[int, float]:
    """Return the scores by position of the document in the request; some may be missing.

    Raises BadAnswer for an index that is repeated or out of range and for a score that is not a number: such
    an answer is not trusted at all.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadAnswer("the answer is not JSON", raw=raw) from None
    results = body.get(api.results) if isinstance(body, dict) else None
    if not isinstance(results, list):
        raise BadAnswer(f'the answer has no list "{api.results}"', raw=raw)
    scores: dict[int, float] = {}
    for result in results:
        fields = result if isinstance(result, dict) else {}
        index, score = fields.get("index"), fields.get("relevance_score")
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < documents:
            raise BadAnswer(f"the index {index!r} is not one of the {documents} documents sent", raw=raw)
        if index in scores:
            raise BadAnswer(f"the index {index} is repeated", raw=raw)
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise BadAnswer(f"the score {score!r} of index {index} is not a number", raw=raw)
        scores[index] = float(score)
    return scores
