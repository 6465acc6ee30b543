"""A request's body is read before the application: a slow sender holds up nobody."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

# Bytes. A larger body stays where it is: who is not signed in may not send one (config/limits.py).
MOST_READ = 1_000_000

StartResponse = Callable[..., Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


def whole_bodies(application: Application) -> Application:
    """Return the application as one that starts when the body is there, and not at all when its sender has gone.

    The thread that waits for a body costs little, as long as it holds no database connection.
    """

    def respond(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        if 0 < size <= MOST_READ:
            body = environ["wsgi.input"].read(size)
            # The sender has gone: nobody would read an answer, and the application need not begin.
            if len(body) < size:
                start_response("400 Bad Request", [("Content-Length", "0")])
                return [b""]
            environ["wsgi.input"] = BytesIO(body)
        return application(environ, start_response)

    return respond
