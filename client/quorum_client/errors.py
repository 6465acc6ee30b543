"""The one error of the client, with what the API said."""

from collections.abc import Sequence
from typing import Any

import httpx2


class QuorumError(Exception):
    """A request that was refused, or that could not be made, or work that did not end well.

    `detail` is the sentence that the pages and commands say, `status` the HTTP status (None: there
    was no answer), `errors` the fields that are wrong, each as (field, problem).
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
    """Return the error that an answer of 400 or more stands for."""
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    # A proxy in between answers with a page of its own.
    if not isinstance(body, dict) or "detail" not in body:
        return QuorumError(f"HTTP {response.status_code} {response.reason_phrase}", status=response.status_code)
    rows = body.get("errors") or []
    wrong = [(str(row.get("field", "")), str(row.get("problem", ""))) for row in rows]
    return QuorumError(str(body["detail"]), status=response.status_code, title=str(body.get("title", "")), errors=wrong)
