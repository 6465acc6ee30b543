"""The model that a service serves, the threads in which it works, and the limits of requests.

Everything that waits for the model raises RequestRefused as `await_result` does.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from corpus.errors import BadInput
from training.published.protocol import EMBEDDINGS_PATH, NEW_TOKENS, RERANK_PATH, ServingRequest
from training.published.scorer import Score, Scorer
from training.recipes.rendering import RenderedPair
from training.serving.batcher import Batcher

if TYPE_CHECKING:
    from training.published.embedding import Pooled, Vectors

ANSWER_TIMEOUT_S = 120

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class RequestRefused(Exception):
    """A request that is refused, or that failed, with the HTTP status and the message of the response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ServedReranker:
    """A model that scores documents in one thread, and writes texts about them in another one."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.batcher = Batcher(scorer)
        # Writing has a thread of its own, so that it does not delay scores. The model writes for one request at a time.
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="writer")

    async def score(self, request: ServingRequest, http_request: Request) -> list[Score]:
        """Return the scores of the documents of a request. They are computed together with those of other requests."""
        # In a thread, because tokenising long documents would block the event loop.
        encoded_rows = await run_in_threadpool(self.scorer.encode, request)
        margins = await await_result(self.batcher.submit(encoded_rows), http_request)
        return [Score(margin, row.is_cut) for margin, row in zip(margins, encoded_rows, strict=True)]

    async def write(self, request: ServingRequest, max_new_tokens: int, http_request: Request) -> list[RenderedPair]:
        """Return the text that the model writes about each document of a request."""
        return await await_result(self.writer.submit(self.scorer.write, request, max_new_tokens), http_request)


class ServedEmbedder:
    """A model that makes vectors, in one thread and for one request at a time."""

    def __init__(self, model: "Pooled") -> None:
        self.model = model
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="embedder")

    async def embed(self, texts: list[str], http_request: Request) -> "tuple[Vectors, int]":
        """Return the vectors of texts, and the number of tokens of all texts."""
        return await await_result(self.executor.submit(self.model.encode, texts), http_request)


class ServedModel:
    """The served model, which is a reranker or an embedder, and the limits of its requests."""

    def __init__(
        self,
        name: str,
        model: "Scorer | Pooled | None",
        *,
        token: str = "",
        max_requests: int = 32,
        max_new_tokens: int = NEW_TOKENS,
    ) -> None:
        """Start the threads of a model.

        `model` is None only for an application that describes itself and answers no request. `token` is the bearer
        token that requests must have, or "" if they need none. At most `max_requests` are in progress at the same
        time. A written answer has at most `max_new_tokens`, unless the request sets another limit.
        """
        self.name = name
        self.token = token
        self.max_requests = max_requests
        self.max_new_tokens = max_new_tokens
        self.setup = model.words if model else ""  # Device and precision in words, such as "tiny model, CPU".
        self.reranker: ServedReranker | None = None
        self.embedder: ServedEmbedder | None = None
        if isinstance(model, Scorer):
            self.reranker = ServedReranker(model)
        elif model is not None:
            self.embedder = ServedEmbedder(model)
        self._free_slots = threading.BoundedSemaphore(max_requests)

    @contextlib.contextmanager
    def reserve_slot_or_refuse(self) -> Iterator[None]:
        """Count a request as one in progress. Raises RequestRefused if `max_requests` are in progress already."""
        if not self._free_slots.acquire(blocking=False):
            message = f"busy: {self.max_requests} requests are already in progress; try again in a second"
            raise RequestRefused(503, message)
        try:
            yield
        finally:
            self._free_slots.release()

    async def require_reranker(self) -> ServedReranker:
        """Return the reranker. Raises RequestRefused with status 404 if the model is an embedder."""
        if self.reranker is None:
            raise RequestRefused(404, f"{self.name} makes vectors and does not rerank: POST to {EMBEDDINGS_PATH}")
        return self.reranker

    async def require_embedder(self) -> ServedEmbedder:
        """Return the embedder. Raises RequestRefused with status 404 if the model is a reranker."""
        if self.embedder is None:
            raise RequestRefused(404, f"{self.name} reranks and makes no vectors: POST to {RERANK_PATH}")
        return self.embedder


async def await_result(future: Future[Result], http_request: Request) -> Result:
    """Wait for the result of a future, and cancel the future if the client disconnects or ANSWER_TIMEOUT_S is over.

    Raises RequestRefused with status 499 if the client disconnected, 503 if the time is over, and 500 if the model
    failed. If the model raised BadInput, that error is raised instead.
    """
    result = asyncio.wrap_future(future)

    async def wait_for_disconnect() -> None:
        while (await http_request.receive())["type"] != "http.disconnect":
            pass

    # A request whose client disconnects is given up at once, so that its slot becomes free.
    disconnect = asyncio.ensure_future(wait_for_disconnect())
    events: set[asyncio.Future[Any]] = {result, disconnect}
    try:
        await asyncio.wait(events, timeout=ANSWER_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if disconnect.done():
            raise RequestRefused(499, "the caller is gone")
        raise RequestRefused(503, f"no answer within {ANSWER_TIMEOUT_S} s: try again, with fewer texts")
    except (BadInput, RequestRefused, asyncio.CancelledError):
        raise
    except Exception:
        logger.exception("a request could not be answered")
        raise RequestRefused(500, "the model failed on this request; the log says why") from None
    finally:
        disconnect.cancel()
        # This also cancels the wrapped future, so that work that has not started is dropped.
        result.cancel()
