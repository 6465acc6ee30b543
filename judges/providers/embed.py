"""Embedding models behind OpenAI's API, vLLM, TEI or `serve_model`, for dense runs."""

import base64
import binascii
from typing import Any

import numpy as np

from judges.errors import Rejected
from judges.prompts.answers import retrieval as answers
from judges.providers.openai import OpenAIProvider
from judges.providers.received import Received
from judges.providers.replies import finite_number, get_count, get_list, get_path
from judges.records import Judge, ModelRequest, Reply, Usage


class EmbedProvider(OpenAIProvider):
    """Provider for embeddings: POST <base_url>/embeddings. It cannot judge."""

    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one call. It asks for base64, which takes a quarter of the bytes of a list of numbers."""
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
        """Return a vector for each text, ordered by index; None if an index is missing or repeated."""
        entries = get_list(body, "data")
        vectors = {get_path(entry, "index"): _read_vector(get_path(entry, "embedding")) for entry in entries}
        rows = [vectors.get(index) for index in range(len(entries))]
        complete_rows = [row for row in rows if row is not None]
        if not complete_rows or len(complete_rows) != len(entries) or len({len(row) for row in complete_rows}) != 1:
            return None
        return Reply(
            text=answers.pack_vectors(np.stack(complete_rows)),
            finish_reason="stop",
            usage=Usage(input=get_count(body, "usage", "prompt_tokens") or get_count(body, "usage", "total_tokens")),
        )


def _read_vector(value: object) -> answers.Vectors | None:
    """Return a vector from a list of numbers or its float32 bytes in base64; None for anything else or not finite."""
    if isinstance(value, str):
        try:
            vector = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        except (binascii.Error, ValueError):
            return None
        return vector if len(vector) and bool(np.isfinite(vector).all()) else None
    if not isinstance(value, list) or not value or any(finite_number(number) is None for number in value):
        return None
    return np.array(value, dtype=np.float32)
