"""Requests and answers in the shape that Cohere's and Jina's clients send and read (pure)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

MOST_BYTES = 16 * 2**20
MOST_DOCUMENTS = 1000
# Documents of one request that contribution and evidence are written for: writing takes far longer than scoring.
MOST_WRITTEN = 20


class Wrong(Exception):
    """The request cannot be answered; `status` is 400 (no JSON) or 422 (JSON that says something else)."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ServingRequest:
    """One query with its documents, and what the answer shall hold of them."""

    query: str
    documents: Sequence[str]
    instruction: str = ""
    document_tokens: int = 0  # A document is cut after so many; 0: where the model ends.
    given: Sequence[Any] = ()  # The documents as they came: strings, or objects with `text`.
    top_n: int = 0
    return_documents: bool = False
    return_evidence: bool = False


def read_request(body: bytes) -> ServingRequest:
    """Return the request of a body. Raises Wrong with one clear line."""
    try:
        found = json.loads(body)
    except ValueError as error:
        raise Wrong(f"the body is not JSON: {error}", 400) from None
    if not isinstance(found, dict):
        raise Wrong("the body must be a JSON object with query and documents")
    query, documents = found.get("query"), found.get("documents")
    if not isinstance(query, str) or not query.strip():
        raise Wrong("query must be a string that is not empty")
    if not isinstance(documents, list) or not documents:
        raise Wrong("documents must be a list that is not empty")
    if len(documents) > MOST_DOCUMENTS:
        raise Wrong(f"{len(documents)} documents: at most {MOST_DOCUMENTS} in one request")
    top = found.get("top_n")
    if top is not None and (not isinstance(top, int) or isinstance(top, bool) or top < 1):
        raise Wrong("top_n must be a whole number from 1")
    instruction = found.get("instruction") or ""
    if not isinstance(instruction, str):
        raise Wrong("instruction must be a string")
    request = ServingRequest(
        query=query,
        documents=tuple(_document_text(one, place) for place, one in enumerate(documents)),
        given=tuple(documents),
        instruction=instruction,
        top_n=min(top or len(documents), len(documents)),
        return_documents=_read_flag(found, "return_documents"),
        return_evidence=_read_flag(found, "return_evidence"),
    )
    if request.return_evidence and request.top_n > MOST_WRITTEN:
        raise Wrong(f"return_evidence is answered for at most {MOST_WRITTEN} documents: give a smaller top_n")
    return request


def _document_text(document: Any, place: int) -> str:
    text = document.get("text") if isinstance(document, dict) else document
    if not isinstance(text, str):
        raise Wrong(f"documents[{place}] must be a string, or an object whose text is a string")
    return text


def _read_flag(found: dict[str, Any], name: str) -> bool:
    value = found.get(name, False)
    if value not in (True, False, None):
        raise Wrong(f"{name} must be true or false")
    return bool(value)


def build_response(
    request: ServingRequest, results: list[dict[str, Any]], model: str, words: str, threshold: float
) -> dict[str, Any]:
    """Return results as both clients read them, with the id and meta of Cohere's and the model and usage of Jina's."""
    characters = sum(map(len, request.documents)) + len(request.query) * len(request.documents)
    return {
        "id": str(uuid4()),
        "model": model,
        "results": results,
        "usage": {"total_tokens": -(-characters // 4)},  # About four characters a token, for who counts them.
        "meta": {
            "api_version": {"version": "1"},
            "billed_units": {"search_units": 0},
            "device": words,
            "threshold": threshold,
        },
    }
