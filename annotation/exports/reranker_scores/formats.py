"""Wire formats of three rerank APIs: Cohere's, Jina's and Voyage's. Pure."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judges.errors import BadAnswer


@dataclass(frozen=True, slots=True)
class Api:
    """The wire format of one API: how it is asked, and the fields of its answers."""

    name: str
    home: str
    path: str
    key_env: str
    top: str  # The field that says how many results are wanted.
    results: str  # The field that holds them.
    extra: tuple[tuple[str, Any], ...] = ()

    def address(self, base: str) -> str:
        """Return the address of the call: a whole one as it is, a base with or without its version completed."""
        base = (base or self.home).rstrip("/")
        if base.endswith("/rerank"):
            return base
        if base.rpartition("/")[2] in {"v1", "v2"}:
            return f"{base}/rerank"
        return base + self.path

    def body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """Return a request for the scores of all documents of one query."""
        asked: dict[str, Any] = {"model": model, "query": query, "documents": list(documents)}
        return {**asked, self.top: len(documents), **dict(self.extra)}


# Fields that some requests have besides.
_SCORES_ONLY = ("return_documents", False)
_CUT = ("truncation", True)
_ALL = (
    Api("cohere", "https://api.cohere.com", "/v2/rerank", "COHERE_API_KEY", "top_n", "results"),
    Api("jina", "https://api.jina.ai", "/v1/rerank", "JINA_API_KEY", "top_n", "results", (_SCORES_ONLY,)),
    Api("voyage", "https://api.voyageai.com", "/v1/rerank", "VOYAGE_API_KEY", "top_k", "data", (_SCORES_ONLY, _CUT)),
)
APIS = {api.name: api for api in _ALL}


def scores_of(api: Api, raw: str, documents: int) -> dict[int, float]:
    """Return the score of each document by its place in the request; there may be fewer than were sent.

    Raises BadAnswer for an index twice or out of range, or a score that is no number: then nothing in it is trusted.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadAnswer("the answer is not JSON", raw=raw) from None
    results = body.get(api.results) if isinstance(body, dict) else None
    if not isinstance(results, list):
        raise BadAnswer(f'the answer has no list "{api.results}"', raw=raw)
    found: dict[int, float] = {}
    for result in results:
        fields = result if isinstance(result, dict) else {}
        index, score = fields.get("index"), fields.get("relevance_score")
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < documents:
            raise BadAnswer(f"the index {index!r} is not one of the {documents} documents sent", raw=raw)
        if index in found:
            raise BadAnswer(f"the index {index} stands twice", raw=raw)
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise BadAnswer(f"the score {score!r} of index {index} is not a number", raw=raw)
        found[index] = float(score)
    return found
