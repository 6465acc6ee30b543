"""The web application of a served model: the rerank APIs of Cohere, Jina and TEI, OpenAI's embeddings, and health."""

import asyncio
import base64
import contextlib
import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
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
    TextsBody,
    explain,
)
from training.published.scorer import Score, Scorer
from training.recipes.rendering import RenderedPair
from training.serving.batcher import Batcher
from training.serving.middleware import TokenCheck, UnpackedBody

if TYPE_CHECKING:
    from training.published.embedding import Pooled, Vectors

ANSWER_TIMEOUT_S = 120
CHARACTERS_PER_TOKEN = 4  # An estimate, for the usage that answers report.

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class RequestRefused(Exception):
    """A request that is refused or failed, with the HTTP status and the message of its response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ServedReranker:
    """A model that scores documents, with one thread that scores and another one that writes."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.batcher = Batcher(scorer)
        # Not the batcher's thread, so that writing does not delay scores; one thread, since the model writes for one
        # request at a time.
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="writer")

    async def score(self, request: ServingRequest, http: Request) -> list[Score]:
        """Return the scores of a request, computed together with those of other requests. Raises as `wait_for`."""
        # In a thread, since tokenising long documents would block the event loop.
        rows = await run_in_threadpool(self.scorer.encode, request)
        margins = await wait_for(self.batcher.submit(rows), http)
        return [Score(margin, row.is_cut) for margin, row in zip(margins, rows, strict=True)]

    async def write(self, request: ServingRequest, max_new_tokens: int, http: Request) -> list[RenderedPair]:
        """Return the text that the model writes for each document. Raises as `wait_for`."""
        return await wait_for(self.writer.submit(self.scorer.write, request, max_new_tokens), http)


class ServedEmbedder:
    """A model that makes vectors, with the thread in which it does so for one request at a time."""

    def __init__(self, model: "Pooled") -> None:
        self.model = model
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="embedder")

    async def embed(self, texts: list[str], http: Request) -> "tuple[Vectors, int]":
        """Return the vectors of texts, and the number of their tokens. Raises as `wait_for`."""
        return await wait_for(self.executor.submit(self.model.encode, texts), http)


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

        `model`: None only for an application that describes itself. `token`: the bearer token of requests, "" for
        none. `max_requests`: requests in progress at the same time. `max_new_tokens`: tokens of a written answer, if
        the request does not say.
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
    def reserve_slot(self) -> Iterator[None]:
        """Reserve one of the `max_requests` slots for a request in progress. Raises RequestRefused if none is free."""
        if not self._free_slots.acquire(blocking=False):
            message = f"busy: {self.max_requests} requests are already in progress; try again in a second"
            raise RequestRefused(503, message)
        try:
            yield
        finally:
            self._free_slots.release()

    async def need_reranker(self) -> ServedReranker:
        """Return the reranker. Raises RequestRefused (404) if the model is an embedder.

        As a dependency of a route, it runs before the body is checked.
        """
        if self.reranker is None:
            raise RequestRefused(404, f"{self.name} makes vectors and does not rerank: POST to {EMBED}")
        return self.reranker

    async def need_embedder(self) -> ServedEmbedder:
        """Return the embedder. Raises RequestRefused (404) if the model is a reranker; runs as `need_reranker`."""
        if self.embedder is None:
            raise RequestRefused(404, f"{self.name} reranks and makes no vectors: POST to {RERANK}")
        return self.embedder


async def wait_for(future: Future[Result], http: Request) -> Result:
    """Return the result of a future, which is cancelled if its client disconnects or after ANSWER_TIMEOUT_S.

    Raises RequestRefused: 499 if the client disconnected, 503 if the time is over, 500 if the model failed. A BadInput
    of the model is passed on.
    """
    result = asyncio.wrap_future(future)

    async def watch_disconnect() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass

    # Watched, so that the request of a client that disconnects frees its slot at once.
    disconnect = asyncio.ensure_future(watch_disconnect())
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
        # This cancels the wrapped future too, so that work that has not started is dropped.
        result.cancel()


def make_app(served: ServedModel) -> FastAPI:
    """Return the application of a model; without a model it can only return its OpenAPI document.

    Names and docstrings of the routes' functions are part of that document.
    """
    app = FastAPI(title="Quorum's model endpoint", version="1", docs_url=None, redoc_url=None)
    error_responses: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": HTTPStatus(status).phrase}
        for status in (400, 401, 404, 413, 415, 422, 503)
    }

    @app.get("/healthz")
    @app.get("/readyz")
    async def tell_ready() -> dict[str, str]:
        """Return the served model. It is loaded before the service starts, so a running service is ready."""
        return {"model": served.name, "words": served.setup}

    @app.get("/v1/models", responses=error_responses)
    async def list_models() -> dict[str, Any]:
        """Return the one model that is served, as OpenAI's clients read it."""
        model = {"id": served.name, "object": "model", "created": 0, "owned_by": "quorum"}
        return {"object": "list", "data": [model]}

    @app.post(RERANK, response_model_exclude_unset=True, responses=error_responses)
    @app.post("/v2/rerank", response_model_exclude_unset=True, responses=error_responses)
    async def rerank(
        body: RerankBody, http: Request, reranker: Annotated[ServedReranker, Depends(served.need_reranker)]
    ) -> RerankAnswer:
        """Score documents for a query, in the shape of Cohere's and Jina's APIs."""
        with served.reserve_slot():
            return await answer_rerank(served, reranker, body, http)

    @app.post("/rerank", response_model_exclude_unset=True, responses=error_responses)
    async def rerank_any(
        body: AnyRerankBody, http: Request, reranker: Annotated[ServedReranker, Depends(served.need_reranker)]
    ) -> RerankAnswer | list[TextResult]:
        """Score `texts` in the shape of TEI's API, or `documents` as /v1/rerank."""
        with served.reserve_slot():
            if isinstance(body, RerankBody):
                return await answer_rerank(served, reranker, body, http)
            return await answer_texts(reranker, body, http)

    @app.post(EMBED, responses=error_responses)
    async def embed(
        body: EmbeddingsBody, http: Request, embedder: Annotated[ServedEmbedder, Depends(served.need_embedder)]
    ) -> dict[str, Any]:
        """Return a vector of length 1 for each text, in the shape of OpenAI's API."""
        with served.reserve_slot():
            return await answer_embeddings(served, embedder, body, http)

    app.add_middleware(UnpackedBody, refuse=problem_response)
    app.add_middleware(TokenCheck, token=served.token, refuse=problem_response)
    _handle_errors(app)
    return app


async def answer_rerank(served: ServedModel, reranker: ServedReranker, body: RerankBody, http: Request) -> RerankAnswer:
    """Score and rank the documents, and write their evidence if the request asks for it. Raises as `wait_for`."""
    scorer = reranker.scorer
    request = body.request()
    scores = await reranker.score(request, http)
    ranking = rank_by_margin(scores)[: body.top]
    probability = scorer.own_probability if body.score == "raw" else scorer.probability
    results = [_make_result(body, index, scores[index], probability) for index in ranking]
    if body.return_evidence:
        top_request = replace(request, documents=[request.documents[index] for index in ranking])
        outputs = await reranker.write(top_request, body.max_new_tokens or served.max_new_tokens, http)
        for result, output in zip(results, outputs, strict=True):
            result.contribution, result.evidence, result.evidence_cut = read_fields(output)
    # The query is read once with each document.
    characters = sum(map(len, request.documents)) + len(request.query) * len(request.documents)
    return RerankAnswer(
        id=str(uuid4()),
        model=served.name,
        results=results,
        usage={"total_tokens": math.ceil(characters / CHARACTERS_PER_TOKEN)},
        meta={
            "api_version": {"version": "1"},
            "billed_units": {"search_units": 0},
            "device": served.setup,
            "precision": scorer.precision,
            "threshold": scorer.threshold,
            "cut": sum(score.is_cut for score in scores),
        },
    )


def _make_result(body: RerankBody, index: int, score: Score, probability: Callable[[float], float]) -> RerankResult:
    """Return the result of one document of a request, with the document if the request asks for it.

    Fields that are not set are left out of the response.
    """
    result = RerankResult(
        index=index, relevance_score=probability(score.margin), margin=score.margin, is_cut=score.is_cut
    )
    if body.return_documents:
        document = body.documents[index]
        result.document = document if isinstance(document, dict) else {"text": document}
    return result


async def answer_texts(reranker: ServedReranker, body: TextsBody, http: Request) -> list[TextResult]:
    """Score and rank the texts of a request in TEI's format. Raises as `wait_for`."""
    scores = await reranker.score(body.request(), http)
    results = []
    for index in rank_by_margin(scores):
        margin, is_cut = scores[index]
        score = margin if body.raw_scores else reranker.scorer.probability(margin)
        result = TextResult(index=index, score=score, margin=margin, is_cut=is_cut)
        if body.return_text:
            result.text = body.texts[index]
        results.append(result)
    return results


def rank_by_margin(scores: Sequence[Score]) -> list[int]:
    """Return the positions of the scores, best first. Not by probability: those near 1 round to the same number."""
    return sorted(range(len(scores)), key=lambda index: (-scores[index].margin, index))


async def answer_embeddings(
    served: ServedModel, embedder: ServedEmbedder, body: EmbeddingsBody, http: Request
) -> dict[str, Any]:
    """Return the vectors of the texts in OpenAI's format, as lists or in base64. Raises as `wait_for`."""
    vectors, token_count = await embedder.embed(body.texts, http)
    embeddings: list[Any]
    if body.encoding_format == "base64":
        # OpenAI's clients read base64 as little-endian fp32.
        embeddings = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
    else:
        embeddings = vectors.astype(float).tolist()
    return {
        "object": "list",
        "model": served.name,
        "data": [
            {"object": "embedding", "index": index, "embedding": embedding}
            for index, embedding in enumerate(embeddings)
        ],
        "usage": {"prompt_tokens": token_count, "total_tokens": token_count},
    }


class EvidenceFields(NamedTuple):
    """Contribution and evidence that a model wrote: "" for a field that there is none of, None for one cut off."""

    contribution: str | None
    evidence: str | None
    is_cut: bool  # Whether the model ran out of tokens before the evidence ended.


def read_fields(output: RenderedPair) -> EvidenceFields:
    """Return the contribution and evidence in the text that a model wrote.

    Both are empty if the model answers no, or in another form. In a cut answer, a field contains the text up to the
    cut, or is None if the cut was before it began, since an empty field would mean that there is none.
    """
    parsed = measures.parse_output(output.text)
    if not output.is_cut or parsed.verdict != 1 or parsed.evidence is not None:
        return EvidenceFields(parsed.contribution or "", parsed.evidence or "", is_cut=False)
    closed = measures.parse_output(measures.close_fields(output.text))
    return EvidenceFields(closed.contribution or None, closed.evidence or None, is_cut=True)


def problem_response(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error message as JSON, under the names that Cohere's and other clients read.

    A response 503 tells the client to try again after one second.
    """
    retry_headers = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({"message": message, "detail": message}, status, {**(headers or {}), **retry_headers})


def _handle_errors(app: FastAPI) -> None:
    """Answer every error of the application with `problem_response`."""

    @app.exception_handler(RequestValidationError)
    async def refuse_body(_http: Request, error: RequestValidationError) -> JSONResponse:
        problem = error.errors()[0]
        if problem["type"] == "json_invalid":
            return problem_response(400, f"the body is not JSON: {problem['ctx']['error']}")
        return problem_response(422, explain(problem))

    @app.exception_handler(RequestRefused)
    async def refuse_request(_http: Request, error: RequestRefused) -> JSONResponse:
        return problem_response(error.status, str(error))

    @app.exception_handler(BadInput)
    async def refuse_input(_http: Request, error: BadInput) -> JSONResponse:
        return problem_response(422, str(error))

    @app.exception_handler(HTTPException)
    async def refuse_route(http: Request, error: HTTPException) -> JSONResponse:
        messages = {
            404: f"nothing at {http.url.path}: POST to {RERANK} or {EMBED}",
            405: f"{http.method} is not answered here: POST a JSON body",
        }
        message = messages.get(error.status_code, str(error.detail))
        return problem_response(error.status_code, message, dict(error.headers or {}))
