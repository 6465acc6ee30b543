"""Reading of request bodies before the application starts, so that a slow sender delays nobody else."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

# Bytes. A larger body is left to the application: only signed-in people may send one (config/limits.py).
MOST_READ = 1_000_000

StartResponse = Callable[..., Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


def whole_bodies(application: Application) -> Application:
    """Wrap the application so that it starts once the body has arrived, and never if the sender disconnects.

    A thread that waits for a body costs little, because it has no database connection yet.
    """

    def respond(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        if 0 < size <= MOST_READ:
            body = environ["wsgi.input"].read(size)
            # The sender has disconnected, so nobody would read an answer.
            if len(body) < size:
                start_response("400 Bad Request", [("Content-Length", "0")])
                return [b""]
            environ["wsgi.input"] = BytesIO(body)
        return application(environ, start_response)

    return respond
