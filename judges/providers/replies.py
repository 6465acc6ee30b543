"""Reading of bodies that may hold anything: parts of an answer, and the error that a refusal means."""

import json
from typing import Any

from judges.records import BadAnswer, Overloaded, ProviderError, RateLimited, Rejected, Unreachable

LARGEST = 2**31 - 1
"""What the columns of counts hold."""


def parse(raw: str) -> dict[str, Any]:
    """The JSON object in a body; {} when it holds no object."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def get(value: object, *path: str | int) -> Any:
    """The value at the end of the path; None where a step of it is missing."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def entries(value: object, *path: str | int) -> list[Any]:
    """The list at the end of the path; [] where there is none."""
    found = get(value, *path)
    return found if isinstance(found, list) else []


def text(value: object, limit: int | None = None) -> str:
    """Text that the database can hold: no lone surrogates, no NUL; "" for anything but text."""
    if not isinstance(value, str):
        return ""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\0", "\ufffd")[:limit]


def count(value: object, *path: str | int) -> int:
    """A count of tokens at the end of the path; 0 where there is none or it is no count."""
    number = get(value, *path)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= LARGEST:
        return 0
    return int(number)


def refusal(host: str, status: int, raw: str, retry_after: float | None) -> ProviderError:
    """The error that a status and its body mean. 2xx: an error body without a usable code."""
    body = parse(raw)
    error = body.get("error", body)
    said = text(get(error, "message")) or text(error) or raw
    message = f"{host}: {status} {' '.join(said.split())[:300]}".strip()
    kind: type[ProviderError] = Rejected
    if status == 429 and get(error, "code") != "insufficient_quota":
        kind = RateLimited
        retry_after = _retry_delay(error) if retry_after is None else retry_after
    elif status >= 500:
        kind = Overloaded
    elif status == 408:
        kind = Unreachable
    elif status < 300:
        kind = BadAnswer
    elif status < 400:
        message = f"{host}: {status} redirects are not followed; correct the base_url"
    return kind(text(message), status=status, raw=raw, retry_after=retry_after)


def error_code(body: dict[str, Any], status: int) -> int:
    """The HTTP status that an error body under a 2xx names (some gateways do that), else the answer's own."""
    code = get(body, "error", "code")
    return code if isinstance(code, int) and 400 <= code < 600 else status


def _retry_delay(error: object) -> float | None:
    """Google writes the wait into the body: details[].retryDelay = "34s"."""
    for detail in entries(error, "details"):
        delay = text(get(detail, "retryDelay"))
        if delay.endswith("s") and delay[:-1].replace(".", "", 1).isdigit():
            return float(delay[:-1])
    return None
