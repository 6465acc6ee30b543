"""An embedding model by OpenAI's API, vLLM, TEI or `serve_model`, for dense runs."""

import base64
import binascii
from typing import Any

import numpy as np

from judges.errors import Rejected
from judges.providers.openai import OpenAIProvider
from judges.providers.received import Received
from judges.providers.replies import finite_number, get_count, get_list, get_path
from judges.records import Judge, ModelRequest, Reply, Usage
from judges.retrieval import answers


class EmbedProvider(OpenAIProvider):
    """Provider for embeddings: POST <base_url>/embeddings. It judges nothing."""

    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one call. It asks for base64, a quarter of the bytes; reads lists of numbers too."""
        if request.role != "embed":
            raise Rejected(f"{request.judge.name} makes vectors: it cannot judge, write or rank")
        call = self.client.embeddings.with_streaming_response.create(
            model=request.judge.model,
            input=list(request.documents),
            encoding_format="base64",
            **self.options(request, received),
        )
        await self.keep(call, received)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return a vector for each text, in the order of their places; None where a place is missing or comes twice."""
        listed = get_list(body, "data")
        vectors = {get_path(one, "index"): _read_vector(get_path(one, "embedding")) for one in listed}
        rows = [vectors.get(place) for place in range(len(listed))]
        found = [row for row in rows if row is not None]
        if not found or len(found) != len(listed) or len({len(row) for row in found}) != 1:
            return None
        return Reply(
            text=answers.pack_vectors(np.stack(found)),
            finish_reason="stop",
            usage=Usage(input=get_count(body, "usage", "prompt_tokens") or get_count(body, "usage", "total_tokens")),
        )


def _read_vector(value: object) -> answers.Vectors | None:
    """Numbers, or their float32 bytes in base64; None for anything else or not finite."""
    if isinstance(value, str):
        try:
            found = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        except (binascii.Error, ValueError):
            return None
        return found if len(found) and bool(np.isfinite(found).all()) else None
    if not isinstance(value, list) or not value or any(finite_number(one) is None for one in value):
        return None
    return np.array(value, dtype=np.float32)
