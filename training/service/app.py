"""The WSGI application: POST /v1/rerank (and /v2/rerank, where Cohere's newer client asks), GET /healthz."""

import hmac
import json
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as TooLate
from typing import Any

from corpus import evidence
from training.scorer import Scorer
from training.service import protocol
from training.service.batcher import Batcher, Full
from training.service.protocol import Request, Scored, Wrong

ADDRESSES = ("/v1/rerank", "/v2/rerank")
PATIENCE_S = 120
PHRASES = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    422: "Unprocessable Content",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

StartResponse = Callable[[str, list[tuple[str, str]]], Any]

logger = logging.getLogger(__name__)


class Rerank:
    """`token`: what callers must bear; "" asks for none. `limit`: requests in work or waiting, before 503."""

    def __init__(self, scorer: Scorer, name: str, *, token: str = "", limit: int = 32) -> None:
        self.scorer, self.name, self.token = scorer, name, token
        self.batcher = Batcher(scorer, limit)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        status, body = self.respond(environ)
        data = json.dumps(body, ensure_ascii=False).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
        if status == 503:
            headers.append(("Retry-After", "1"))
        if status == 405:
            headers.append(("Allow", "POST"))
        start_response(f"{status} {PHRASES[status]}", headers)
        return [data]

    def respond(self, environ: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and JSON of one request. An error is {"message"}, where Cohere's client looks, and {"detail"}."""
        path, method = environ.get("PATH_INFO", ""), environ.get("REQUEST_METHOD", "")
        if path == "/healthz":
            return 200, {"model": self.name, "words": self.scorer.words}
        if path not in ADDRESSES:
            return problem(404, f"nothing at {path}: POST to {ADDRESSES[0]}")
        if method != "POST":
            return problem(405, f"{method} is not answered here: POST a JSON body")
        if not self.allowed(environ):
            return problem(401, "give the service's token: Authorization: Bearer ...")
        try:
            return self.rerank(body_of(environ))
        except Wrong as wrong:
            return problem(wrong.status, str(wrong))
        except Full:
            return problem(503, f"{self.batcher.limit} requests are being answered or wait: try again in a second")
        except TooLate:
            return problem(503, f"no answer within {PATIENCE_S} s: try again, with fewer documents")
        except Exception:
            logger.exception("a request could not be answered")
            return problem(500, "the model failed on this request; the log says why")

    def allowed(self, environ: dict[str, Any]) -> bool:
        """The bearer token is ours, compared in constant time."""
        given = str(environ.get("HTTP_AUTHORIZATION", ""))
        return not self.token or hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode())

    def rerank(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Score, and write where that was asked for."""
        request = protocol.read(body)
        scored = self.batcher.submit(request).result(PATIENCE_S)
        written: dict[int, dict[str, str]] = {}
        if request.return_evidence:
            written = self.batcher.call(lambda: self.write(request, scored)).result(PATIENCE_S)
        return 200, protocol.answer(request, scored, self.name, self.scorer.words, written, self.scorer.threshold)

    def write(self, request: Request, scored: Scored) -> dict[int, dict[str, str]]:
        """Contribution and evidence by place; both empty where the model says no, or writes something else."""
        found = {}
        for place in protocol.best(request, scored):
            said = self.scorer.generate(request.query, request.documents[place], request.instruction)
            output = evidence.parse_output(said)
            found[place] = {"contribution": output.contribution or "", "evidence": output.evidence or ""}
        return found


def body_of(environ: dict[str, Any]) -> bytes:
    """The request's body. Raises Wrong when it is too large."""
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        raise Wrong("Content-Length is not a number", 400) from None
    if length > protocol.MOST_BYTES:
        raise Wrong(f"{length:,} bytes: at most {protocol.MOST_BYTES:,} in one request", 413)
    return bytes(environ["wsgi.input"].read(length))


def problem(status: int, message: str) -> tuple[int, dict[str, Any]]:
    """An error as JSON."""
    return status, {"message": message, "detail": message}
