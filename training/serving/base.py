"""What every address of a served model shares: WSGI, the token, errors as JSON, GET /healthz and /readyz."""

import hmac
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as TooLate
from http import HTTPStatus
from typing import Any

from training.serving import protocol
from training.serving.batcher import Full
from training.serving.protocol import Wrong

PATIENCE_S = 120
StartResponse = Callable[[str, list[tuple[str, str]]], Any]

logger = logging.getLogger(__name__)


class Service(ABC):
    """One model behind some addresses. `token`: what callers must bear; "" asks for none.

    `words`: what stands beside its figures. `limit`: requests in work or waiting, before 503.
    """

    addresses: tuple[str, ...]

    def __init__(self, name: str, words: str, *, token: str, limit: int) -> None:
        self.name, self.words, self.token, self.limit = name, words, token, limit

    @abstractmethod
    def answer(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Return status and JSON for the body of a POST. Raises Wrong, Full, TooLate."""

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        status, body = self.respond(environ)
        data = json.dumps(body, ensure_ascii=False).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
        if status == 503:
            headers.append(("Retry-After", "1"))
        if status == 405:
            headers.append(("Allow", "POST"))
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [data]

    def respond(self, environ: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and JSON of one request; an error is {"message"} (for Cohere's client) and {"detail"}."""
        path, method = environ.get("PATH_INFO", ""), environ.get("REQUEST_METHOD", "")
        # The model is loaded before the first request is taken, so who lives is ready.
        if path in ("/healthz", "/readyz"):
            return 200, {"model": self.name, "words": self.words}
        if path not in self.addresses:
            return error_response(404, f"nothing at {path}: POST to {self.addresses[0]}")
        if method != "POST":
            return error_response(405, f"{method} is not answered here: POST a JSON body")
        given = str(environ.get("HTTP_AUTHORIZATION", ""))
        # Compared in constant time: how long a refusal takes must not tell how much of a token was right.
        if self.token and not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            return error_response(401, "give the service's token: Authorization: Bearer ...")
        try:
            return self.answer(_read_body(environ))
        except Wrong as wrong:
            return error_response(wrong.status, str(wrong))
        except Full:
            return error_response(503, f"{self.limit} requests are being answered or wait: try again in a second")
        except TooLate:
            return error_response(503, f"no answer within {PATIENCE_S} s: try again, with fewer texts")
        except Exception:
            logger.exception("a request could not be answered")
            return error_response(500, "the model failed on this request; the log says why")


def _read_body(environ: dict[str, Any]) -> bytes:
    """Return the request's body. Raises Wrong when it is too large."""
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        raise Wrong("Content-Length is not a number", 400) from None
    if length > protocol.MOST_BYTES:
        raise Wrong(f"{length:,} bytes: at most {protocol.MOST_BYTES:,} in one request", 413)
    return bytes(environ["wsgi.input"].read(length))


def error_response(status: int, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"message": message, "detail": message}
