"""The error of the client, with the API's description of the problem."""

from collections.abc import Sequence
from typing import Any

import httpx2


class QuorumError(Exception):
    """A request was refused or could not be sent, or work in the background failed.

    `detail`: the message, as pages and commands show it; `status`: the HTTP status (None: no response);
    `errors`: (field, problem) of each field with a problem.
    """

    def __init__(
        self, detail: str, *, status: int | None = None, title: str = "", errors: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.title = title
        self.errors = tuple(errors)


def read_problem(response: httpx2.Response) -> QuorumError:
    """Return the error of a response with a status of 400 or more."""
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    # A proxy may answer with its own page.
    if not isinstance(body, dict) or "detail" not in body:
        return QuorumError(f"HTTP {response.status_code} {response.reason_phrase}", status=response.status_code)
    rows = body.get("errors") or []
    errors = [(str(row.get("field", "")), str(row.get("problem", ""))) for row in rows]
    return QuorumError(
        str(body["detail"]), status=response.status_code, title=str(body.get("title", "")), errors=errors
    )
