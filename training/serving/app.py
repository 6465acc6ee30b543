"""The web application of a served model: the rerank APIs of Cohere, Jina and TEI, OpenAI's embeddings, and health."""

import asyncio
import base64
import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from fastapi import Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from corpus.errors import BadInput
from corpus.evidence import measures
from training.published.protocol import (
    EMBED,
    NEW_TOKENS,
    RERANK,
    AnyRerankBody,
    EmbeddingsBody,
    Problem,
    RerankAnswer,
    RerankBody,
    RerankResult,
    ServingRequest,
    TextResult,
    explain,
)
from training.published.scorer import Score, Scorer
from training.recipes.rendering import RenderedPair
from training.serving.batcher import Batcher
from training.serving.middleware import TokenCheck, UnpackedBody

if TYPE_CHECKING:
    from training.published.embedding import Pooled

PATIENCE_S = 120

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class RequestRefused(Exception):
    """A request that is not answered, for the reason in `status` and the message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Served:
    """A served model: its scorer or embedder, their threads, and a limit of concurrent requests."""

    def __init__(
        self,
        name: str,
        model: "Scorer | Pooled | None",
        *,
        token: str = "",
        limit: int = 32,
        max_new_tokens: int = NEW_TOKENS,
    ) -> None:
        self.name, self.token, self.limit, self.max_new_tokens = name, token, limit, max_new_tokens
        self.scorer = model if isinstance(model, Scorer) else None
        self.embedder = None if isinstance(model, Scorer) else model
        self.words = model.words if model else ""
        self.slots = threading.BoundedSemaphore(limit)
        self.batcher = Batcher(self.scorer) if self.scorer else None
        # Not the batcher's thread, so that writing and embedding do not delay scores; one thread, since the model
        # writes for one request at a time.
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="writer")

    @contextlib.contextmanager
    def slot(self) -> Iterator[None]:
        """Take one of the `limit` slots for a request. Raises RequestRefused if none is free."""
        if not self.slots.acquire(blocking=False):
            raise RequestRefused(503, f"{self.limit} requests are being answered or wait: try again in a second")
        try:
            yield
        finally:
            self.slots.release()

    async def need_scorer(self) -> None:
        """Refuse with 404 if the model is no reranker, before the body is checked."""
        if self.scorer is None:
            raise RequestRefused(404, f"{self.name} makes vectors and does not rerank: POST to {EMBED}")

    async def need_embedder(self) -> None:
        """Refuse with 404 if the model is no embedding model, before the body is checked."""
        if self.embedder is None:
            raise RequestRefused(404, f"{self.name} reranks and makes no vectors: POST to {RERANK}")

    async def score(self, request: ServingRequest, http: Request) -> list[Score]:
        """Return the scores of a request, computed together with those of other requests. Raises RequestRefused."""
        assert self.scorer is not None and self.batcher is not None
        # In a thread, since tokenising long documents would block the event loop.
        rows = await run_in_threadpool(self.scorer.encode, request)
        margins = await wait_for(self.batcher.submit(rows), http)
        return [Score(margin, row.is_cut) for margin, row in zip(margins, rows, strict=True)]

    async def write(self, request: ServingRequest, max_new_tokens: int, http: Request) -> list[RenderedPair]:
        """Return the text that the model writes for each document. Raises RequestRefused."""
        assert self.scorer is not None
        return await wait_for(self.writer.submit(self.scorer.write, request, max_new_tokens), http)

    async def embed(self, texts: list[str], http: Request) -> tuple[Any, int]:
        """Return the vectors of texts, and the number of their tokens. Raises RequestRefused."""
        assert self.embedder is not None
        return await wait_for(self.writer.submit(self.embedder.encode, texts), http)


async def wait_for(future: Future[Result], http: Request) -> Result:
    """Return the result of a future, which is cancelled if its caller disconnects or after PATIENCE_S.

    Raises RequestRefused.
    """
    result = asyncio.wrap_future(future)

    async def watch_disconnect() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass

    # A caller that disconnects frees its slot at once.
    disconnect = asyncio.ensure_future(watch_disconnect())
    events: set[asyncio.Future[Any]] = {result, disconnect}
    try:
        await asyncio.wait(events, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if disconnect.done():
            raise RequestRefused(499, "the caller is gone")
        raise RequestRefused(503, f"no answer within {PATIENCE_S} s: try again, with fewer texts")
    except (BadInput, RequestRefused, asyncio.CancelledError):
        raise
    except Exception:
        logger.exception("a request could not be answered")
        raise RequestRefused(500, "the model failed on this request; the log says why") from None
    finally:
        disconnect.cancel()
        result.cancel()  # This cancels the future, so work that has not started is dropped.


def make_app(served: Served) -> FastAPI:
    """Return the application of a model; without a model it can only return its OpenAPI document."""
    app = FastAPI(title="Quorum's model endpoint", version="1", docs_url=None, redoc_url=None)
    refused: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": HTTPStatus(status).phrase}
        for status in (400, 401, 404, 413, 415, 422, 503)
    }

    reranks: dict[str, Any] = {
        "response_model_exclude_unset": True,
        "dependencies": [Depends(served.need_scorer)],
        "responses": refused,
    }

    @app.get("/healthz")
    @app.get("/readyz")
    async def tell_ready() -> dict[str, str]:
        """Return the served model. It is loaded before the service starts, so a running service is ready."""
        return {"model": served.name, "words": served.words}

    @app.get("/v1/models", responses=refused)
    async def list_models() -> dict[str, Any]:
        """Return the one model that is served, as OpenAI's clients read it."""
        model = {"id": served.name, "object": "model", "created": 0, "owned_by": "quorum"}
        return {"object": "list", "data": [model]}

    @app.post(RERANK, **reranks)
    @app.post("/v2/rerank", **reranks)
    async def rerank(body: RerankBody, http: Request) -> RerankAnswer:
        """Score documents for a query, in the shape of Cohere's and Jina's APIs."""
        with served.slot():
            return await answer_rerank(served, body, http)

    @app.post("/rerank", **reranks)
    async def rerank_any(body: AnyRerankBody, http: Request) -> RerankAnswer | list[TextResult]:
        """Score `texts` in the shape of TEI's API, or `documents` as /v1/rerank."""
        with served.slot():
            if isinstance(body, RerankBody):
                return await answer_rerank(served, body, http)
            scores = await served.score(body.request(), http)
        assert served.scorer is not None
        results = []
        for index in sorted(range(len(scores)), key=lambda index: (-scores[index].margin, index)):
            margin, is_cut = scores[index]
            score = margin if body.raw_scores else served.scorer.probability(margin)
            results.append(TextResult(index=index, score=score, margin=margin, is_cut=is_cut))
            if body.return_text:
                results[-1].text = body.texts[index]
        return results

    @app.post(EMBED, dependencies=[Depends(served.need_embedder)], responses=refused)
    async def embed(body: EmbeddingsBody, http: Request) -> dict[str, Any]:
        """Return a vector of length 1 for each text, in the shape of OpenAI's API."""
        with served.slot():
            vectors, tokens = await served.embed(body.texts, http)
        embeddings: list[Any] = vectors.astype(float).tolist()
        # OpenAI's clients read base64 as little-endian fp32.
        if body.encoding_format == "base64":
            embeddings = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        data = [
            {"object": "embedding", "index": index, "embedding": embedding}
            for index, embedding in enumerate(embeddings)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": served.name, "data": data, "usage": usage}

    app.add_middleware(UnpackedBody, refuse=problem_response)
    app.add_middleware(TokenCheck, token=served.token, refuse=problem_response)
    _handle_errors(app)
    return app


async def answer_rerank(served: Served, body: RerankBody, http: Request) -> RerankAnswer:
    """Score and sort the documents, and write their evidence if the request asks for it."""
    request = body.request()
    scores = await served.score(request, http)
    assert served.scorer is not None
    # Sorted by margin, not by probability, since probabilities near 1 round to the same number.
    ranking = sorted(range(len(scores)), key=lambda index: (-scores[index].margin, index))[: body.top]
    probability = served.scorer.own_probability if body.score == "raw" else served.scorer.probability
    results = [
        RerankResult(index=index, relevance_score=probability(scores[index].margin), **scores[index]._asdict())
        for index in ranking
    ]
    for result in results if body.return_documents else []:
        document = body.documents[result.index]
        result.document = document if isinstance(document, dict) else {"text": document}
    if body.return_evidence:
        top_request = replace(request, documents=[request.documents[index] for index in ranking])
        outputs = await served.write(top_request, body.max_new_tokens or served.max_new_tokens, http)
        for result, output in zip(results, outputs, strict=True):
            result.contribution, result.evidence, result.evidence_cut = read_fields(output)
    characters = sum(map(len, request.documents)) + len(request.query) * len(request.documents)
    return RerankAnswer(
        id=str(uuid4()),
        model=served.name,
        results=results,
        usage={"total_tokens": -(-characters // 4)},  # An estimate, of four characters for each token.
        meta={
            "api_version": {"version": "1"},
            "billed_units": {"search_units": 0},
            "device": served.words,
            "precision": served.scorer.precision,
            "threshold": served.scorer.threshold,
            "cut": sum(score.is_cut for score in scores),
        },
    )


def read_fields(output: RenderedPair) -> tuple[str | None, str | None, bool]:
    """Return contribution and evidence of an answer, and whether it was cut before its evidence ended.

    Both are empty if the model answers no, or in another form. In a cut answer, a field contains the text up to the
    cut, or is None if the cut was before it began, since an empty field would mean that there is none.
    """
    parsed = measures.parse_output(output.text)
    if not output.is_cut or parsed.verdict != 1 or parsed.evidence is not None:
        return parsed.contribution or "", parsed.evidence or "", False
    closed = measures.parse_output(measures.close_fields(output.text))
    return closed.contribution or None, closed.evidence or None, True


def problem_response(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error message as JSON, under the names that Cohere's and other clients read."""
    retry = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({"message": message, "detail": message}, status, {**(headers or {}), **retry})


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def refuse_body(_http: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return problem_response(400, f"the body is not JSON: {first['ctx']['error']}")
        return problem_response(422, explain(first))

    @app.exception_handler(RequestRefused)
    async def refuse(_http: Request, error: RequestRefused) -> JSONResponse:
        return problem_response(error.status, str(error))

    @app.exception_handler(BadInput)
    async def refuse_input(_http: Request, error: BadInput) -> JSONResponse:
        return problem_response(422, str(error))

    @app.exception_handler(HTTPException)
    async def refuse_address(http: Request, error: HTTPException) -> JSONResponse:
        messages = {
            404: f"nothing at {http.url.path}: POST to {RERANK} or {EMBED}",
            405: f"{http.method} is not answered here: POST a JSON body",
        }
        message = messages.get(error.status_code, str(error.detail))
        return problem_response(error.status_code, message, dict(error.headers or {}))
