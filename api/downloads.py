"""Description of downloads in the API's document: ranges and conditions (store.downloads)."""

from typing import Any

PLAIN: dict[str, Any] = {"schema": {"type": "string"}}


def describe_download(words: str, content_type: str = "application/octet-stream") -> dict[str, Any]:
    """Return the part of an operation that says what a download answers, and which headers it knows."""
    kind = "binary" if content_type == "application/octet-stream" else None
    content = {content_type: {"schema": {"type": "string", **({"format": kind} if kind else {})}}}
    headers = {"ETag": PLAIN, "Accept-Ranges": PLAIN}
    asked = ("Range", "If-Range", "If-None-Match")
    return {
        "parameters": [{"name": name, "in": "header", "required": False, **PLAIN} for name in asked],
        "responses": {
            200: {"description": words, "content": content, "headers": headers},
            206: {
                "description": "The bytes that Range asks for.",
                "content": content,
                "headers": {**headers, "Content-Range": PLAIN},
            },
            304: {"description": "Not Modified"},
            416: {"description": "No byte of the file is in this range.", "headers": {"Content-Range": PLAIN}},
        },
    }
