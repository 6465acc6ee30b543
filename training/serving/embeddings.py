"""The WSGI application of an encoder: POST /v1/embeddings as OpenAI's clients send and read it."""

import base64
import json
import threading
from typing import TYPE_CHECKING, Any

from training.serving.base import PATIENCE_S, Service
from training.serving.batcher import Full
from training.serving.protocol import Wrong

if TYPE_CHECKING:
    from training.trainers.embedding import Pooled

MOST_TEXTS = 2048


def read_request(body: bytes) -> tuple[list[str], bool]:
    """Return the texts, and whether their vectors are asked for as base64. Raises Wrong with one clear line."""
    try:
        found = json.loads(body)
    except ValueError as error:
        raise Wrong(f"the body is not JSON: {error}", 400) from None
    given = found.get("input") if isinstance(found, dict) else None
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(one, str) and one for one in texts):
        raise Wrong("input must be a string that is not empty, or a list of such")
    if len(texts) > MOST_TEXTS:
        raise Wrong(f"{len(texts)} texts: at most {MOST_TEXTS} in one request")
    form = found.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise Wrong('encoding_format must be "float" or "base64"')
    return texts, form == "base64"


class Embeddings(Service):
    """An embedder; one request at a time has the model."""

    addresses = ("/v1/embeddings",)

    def __init__(self, embedder: "Pooled", name: str, *, token: str = "", limit: int = 32) -> None:
        super().__init__(name, embedder.words, token=token, limit=limit)
        self.embedder = embedder
        self.room = threading.BoundedSemaphore(limit)
        self.model = threading.Lock()

    def answer(self, body: bytes) -> tuple[int, dict[str, Any]]:
        texts, as_base64 = read_request(body)
        # A place among those that wait first, then the model: who finds no place is told so at once.
        if not self.room.acquire(blocking=False):
            raise Full
        try:
            if not self.model.acquire(timeout=PATIENCE_S):
                raise TimeoutError
            try:
                vectors, tokens = self.embedder.encode(texts)
            finally:
                self.model.release()
        finally:
            self.room.release()
        if as_base64:  # Little-endian fp32, as OpenAI's clients unpack it.
            encoded: list[Any] = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
        else:
            encoded = vectors.astype(float).tolist()
        data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(encoded)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return 200, {"object": "list", "model": self.name, "data": data, "usage": usage}
