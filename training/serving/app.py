"""The application of a served model: rerank addresses of Cohere, Jina and TEI, OpenAI's embeddings, health, OpenAPI."""

import asyncio
import base64
import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
from training.recipes.rendering import RenderedPair
from training.serving.batcher import Batcher
from training.serving.middleware import TokenCheck, UnpackedBody
from training.serving.protocol import (
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
from training.serving.scorer import Score, Scorer

if TYPE_CHECKING:
    from training.trainers.embedding import Pooled

PATIENCE_S = 120

logger = logging.getLogger(__name__)

Found = TypeVar("Found")


class Refused(Exception):
    """The request is not answered; `status` and one line say why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Served:
    """A model behind the addresses, with its waiters. `limit`: requests before 503."""

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
        self.room = threading.BoundedSemaphore(limit)
        self.batcher = Batcher(self.scorer) if self.scorer else None
        # Apart from the batcher's thread, so that writing and embedding do not hold up scores; one
        # thread, since the model writes for one request at a time.
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="writer")

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Context manager that takes a place, or raises Refused at once without one."""
        if not self.room.acquire(blocking=False):
            raise Refused(503, f"{self.limit} requests are being answered or wait: try again in a second")
        try:
            yield
        finally:
            self.room.release()

    async def need_scorer(self) -> None:
        """Refuse with 404 where the model is no reranker, before a body is looked at."""
        if self.scorer is None:
            raise Refused(404, f"{self.name} makes vectors and does not rerank: POST to {EMBED}")

    async def need_embedder(self) -> None:
        """Refuse with 404 where the model makes no vectors, before a body is looked at."""
        if self.embedder is None:
            raise Refused(404, f"{self.name} reranks and makes no vectors: POST to {RERANK}")

    async def score(self, asked: ServingRequest, http: Request) -> list[Score]:
        """Return the scores of one request, computed with others that wait. Raises Refused."""
        assert self.scorer is not None and self.batcher is not None
        # In a thread, since tokenising long documents would hold up the event loop.
        rows = await run_in_threadpool(self.scorer.encode, asked)
        margins = await wait_for(self.batcher.submit(rows), http)
        return [Score(margin, row.is_cut) for margin, row in zip(margins, rows, strict=True)]

    async def write(self, asked: ServingRequest, most: int, http: Request) -> list[RenderedPair]:
        """Return what the model writes for each document. Raises Refused."""
        assert self.scorer is not None
        return await wait_for(self.writer.submit(self.scorer.write, asked, most), http)

    async def embed(self, texts: list[str], http: Request) -> tuple[Any, int]:
        """Return vectors, and how many tokens were read. Raises Refused."""
        assert self.embedder is not None
        return await wait_for(self.writer.submit(self.embedder.encode, texts), http)


async def wait_for(future: Future[Found], http: Request) -> Found:
    """Return a future's result; cancelled with its caller or PATIENCE_S. Refused."""
    result = asyncio.wrap_future(future)

    async def watch_disconnect() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass

    # A caller that hung up frees its place at once.
    gone = asyncio.ensure_future(watch_disconnect())
    both: set[asyncio.Future[Any]] = {result, gone}
    try:
        await asyncio.wait(both, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if gone.done():
            raise Refused(499, "the caller is gone")
        raise Refused(503, f"no answer within {PATIENCE_S} s: try again, with fewer texts")
    except (BadInput, Refused, asyncio.CancelledError):
        raise
    except Exception:
        logger.exception("a request could not be answered")
        raise Refused(500, "the model failed on this request; the log says why") from None
    finally:
        gone.cancel()
        result.cancel()  # And with it the future: what was not begun is not done.


def make_app(served: Served) -> FastAPI:
    """Return the application of a model; without one it only tells its OpenAPI document."""
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
        """Say which model is served: it loads before requests, so who lives is ready."""
        return {"model": served.name, "words": served.words}

    @app.get("/v1/models", responses=refused)
    async def list_models() -> dict[str, Any]:
        """Return the one model that is served, as OpenAI's clients read it."""
        one = {"id": served.name, "object": "model", "created": 0, "owned_by": "quorum"}
        return {"object": "list", "data": [one]}

    @app.post(RERANK, **reranks)
    @app.post("/v2/rerank", **reranks)
    async def rerank(body: RerankBody, http: Request) -> RerankAnswer:
        """Score documents for a query, in the shape of Cohere's and Jina's APIs."""
        with served.place():
            return await answer_rerank(served, body, http)

    @app.post("/rerank", **reranks)
    async def rerank_any(body: AnyRerankBody, http: Request) -> RerankAnswer | list[TextResult]:
        """Score `texts` in the shape of TEI's API, or `documents` as /v1/rerank."""
        with served.place():
            if isinstance(body, RerankBody):
                return await answer_rerank(served, body, http)
            return await answer_texts(served, body, http)

    @app.post(EMBED, dependencies=[Depends(served.need_embedder)], responses=refused)
    async def embed(body: EmbeddingsBody, http: Request) -> dict[str, Any]:
        """Return a vector of length 1 for each text, in the shape of OpenAI's API."""
        with served.place():
            vectors, tokens = await served.embed(body.texts, http)
        encoded: list[Any] = vectors.astype(float).tolist()
        if body.encoding_format == "base64":  # Little-endian fp32, as OpenAI's clients unpack it.
            encoded = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
        data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(encoded)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": served.name, "data": data, "usage": usage}

    app.add_middleware(UnpackedBody, refuse=problem_response)
    app.add_middleware(TokenCheck, token=served.token, refuse=problem_response)
    _handle_errors(app)
    return app


async def answer_rerank(served: Served, body: RerankBody, http: Request) -> RerankAnswer:
    """Score, order, and write evidence where it is asked for."""
    asked = body.request()
    scores = await served.score(asked, http)
    assert served.scorer is not None
    # The raw margin decides, then the order in which they came: probabilities near 1 round to the same number.
    places = sorted(range(len(scores)), key=lambda place: (-scores[place].margin, place))[: body.top]
    probability = served.scorer.own_probability if body.score == "raw" else served.scorer.probability
    results = [
        RerankResult(index=at, relevance_score=probability(scores[at].margin), **scores[at]._asdict()) for at in places
    ]
    for result in results if body.return_documents else []:
        given = body.documents[result.index]
        result.document = given if isinstance(given, dict) else {"text": given}
    if body.return_evidence:
        texts = [asked.documents[place] for place in places]
        chosen = ServingRequest(asked.query, texts, asked.instruction, asked.document_tokens)
        written = await served.write(chosen, body.max_new_tokens or served.max_new_tokens, http)
        for result, said in zip(results, written, strict=True):
            result.contribution, result.evidence, result.evidence_cut = read_fields(said)
    characters = sum(map(len, asked.documents)) + len(asked.query) * len(asked.documents)
    return RerankAnswer(
        id=str(uuid4()),
        model=served.name,
        results=results,
        usage={"total_tokens": -(-characters // 4)},  # About four characters a token, for who counts them.
        meta={
            "api_version": {"version": "1"},
            "billed_units": {"search_units": 0},
            "device": served.words,
            "precision": served.scorer.precision,
            "threshold": served.scorer.threshold,
            "cut": sum(score.is_cut for score in scores),
        },
    )


async def answer_texts(served: Served, body: TextsBody, http: Request) -> list[TextResult]:
    """Score texts as TEI: the best first, probabilities or raw margins."""
    scores = await served.score(body.request(), http)
    assert served.scorer is not None
    results = []
    for place in sorted(range(len(scores)), key=lambda place: (-scores[place].margin, place)):
        margin, is_cut = scores[place]
        value = margin if body.raw_scores else served.scorer.probability(margin)
        results.append(TextResult(index=place, score=value, margin=margin, is_cut=is_cut))
        if body.return_text:
            results[-1].text = body.texts[place]
    return results


def read_fields(said: RenderedPair) -> tuple[str | None, str | None, bool]:
    """Return contribution and evidence of an answer, and whether it was cut before its evidence ended.

    Both are empty where the model says no, or writes something else. What was cut keeps what was
    written of it, and is None where it was cut before it began: an empty text would say that there
    is none.
    """
    whole = measures.parse_output(said.text)
    if not said.is_cut or whole.verdict != 1 or whole.evidence is not None:
        return whole.contribution or "", whole.evidence or "", False
    closed = measures.parse_output(measures.close_fields(said.text))
    return closed.contribution or None, closed.evidence or None, True


def problem_response(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return one line as JSON, under the names that Cohere's and other clients read."""
    more = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({"message": message, "detail": message}, status, {**(headers or {}), **more})


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def refuse_body(_http: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return problem_response(400, f"the body is not JSON: {first['ctx']['error']}")
        return problem_response(422, explain(first))

    @app.exception_handler(Refused)
    async def refuse(_http: Request, error: Refused) -> JSONResponse:
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
        said = messages.get(error.status_code, str(error.detail))
        return problem_response(error.status_code, said, dict(error.headers or {}))
