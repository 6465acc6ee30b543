"""The web application of a served model: the rerank APIs of Cohere, Jina and TEI, OpenAI's embeddings, and health."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from corpus.errors import BadInput
from training.published.protocol import (
    EMBEDDINGS_PATH,
    RERANK_PATH,
    AnyRerankBody,
    EmbeddingsBody,
    Problem,
    RerankAnswer,
    RerankBody,
    TextResult,
    explain,
)
from training.serving.answers import answer_embeddings, answer_rerank, answer_texts
from training.serving.middleware import TokenCheck, UnpackedBody
from training.serving.served_model import RequestRefused, ServedEmbedder, ServedModel, ServedReranker


def make_app(served: ServedModel) -> FastAPI:
    """Build the application of a served model.

    The names and the docstrings of the functions of the routes are part of the application's OpenAPI document, and the
    keys of their responses are those that clients read, so they cannot change.
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

    @app.post(RERANK_PATH, response_model_exclude_unset=True, responses=error_responses)
    @app.post("/v2/rerank", response_model_exclude_unset=True, responses=error_responses)
    async def rerank(
        body: RerankBody, http_request: Request, reranker: Annotated[ServedReranker, Depends(served.require_reranker)]
    ) -> RerankAnswer:
        """Score documents for a query, in the shape of Cohere's and Jina's APIs."""
        with served.reserve_slot_or_refuse():
            return await answer_rerank(served, reranker, body, http_request)

    @app.post("/rerank", response_model_exclude_unset=True, responses=error_responses)
    async def rerank_any(
        body: AnyRerankBody,
        http_request: Request,
        reranker: Annotated[ServedReranker, Depends(served.require_reranker)],
    ) -> RerankAnswer | list[TextResult]:
        """Score `texts` in the shape of TEI's API, or `documents` as /v1/rerank."""
        with served.reserve_slot_or_refuse():
            if isinstance(body, RerankBody):
                return await answer_rerank(served, reranker, body, http_request)
            return await answer_texts(reranker, body, http_request)

    @app.post(EMBEDDINGS_PATH, responses=error_responses)
    async def embed(
        body: EmbeddingsBody,
        http_request: Request,
        embedder: Annotated[ServedEmbedder, Depends(served.require_embedder)],
    ) -> dict[str, Any]:
        """Return a vector of length 1 for each text, in the shape of OpenAI's API."""
        with served.reserve_slot_or_refuse():
            return await answer_embeddings(served, embedder, body, http_request)

    # The token is checked first, because the middleware that is added last runs first.
    app.add_middleware(UnpackedBody, refuse=build_problem_response)
    app.add_middleware(TokenCheck, token=served.token, refuse=build_problem_response)
    _add_error_handlers(app)
    return app


def build_problem_response(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Build the response to a request that is refused or that failed.

    The message has two names, because some clients read the one and some the other. A response with status 503 asks
    the client to try again after one second.
    """
    retry_headers = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({"message": message, "detail": message}, status, {**(headers or {}), **retry_headers})


def _add_error_handlers(app: FastAPI) -> None:
    """Let the application answer the errors that it expects with `build_problem_response`."""

    @app.exception_handler(RequestValidationError)
    async def refuse_body(_http: Request, error: RequestValidationError) -> JSONResponse:
        problem = error.errors()[0]
        if problem["type"] == "json_invalid":
            return build_problem_response(400, f"the body is not JSON: {problem['ctx']['error']}")
        return build_problem_response(422, explain(problem))

    @app.exception_handler(RequestRefused)
    async def refuse_request(_http: Request, error: RequestRefused) -> JSONResponse:
        return build_problem_response(error.status, str(error))

    @app.exception_handler(BadInput)
    async def refuse_input(_http: Request, error: BadInput) -> JSONResponse:
        return build_problem_response(422, str(error))

    @app.exception_handler(HTTPException)
    async def refuse_route(http: Request, error: HTTPException) -> JSONResponse:
        messages = {
            404: f"nothing at {http.url.path}: POST to {RERANK_PATH} or {EMBEDDINGS_PATH}",
            405: f"{http.method} is not answered here: POST a JSON body",
        }
        message = messages.get(error.status_code, str(error.detail))
        return build_problem_response(error.status_code, message, dict(error.headers or {}))
