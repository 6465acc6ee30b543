"""Description of downloads in the OpenAPI document: ranges and conditions (store.downloads)."""

from typing import Any

PLAIN: dict[str, Any] = {"schema": {"type": "string"}}
HEADERS = {"ETag": PLAIN, "Accept-Ranges": PLAIN}
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
PART = {**HEADERS, "Content-Range": PLAIN}
# The headers and responses of an operation that sends a file.
DOWNLOAD: dict[str, Any] = {
    "parameters": [
        {"name": name, "in": "header", "required": False, **PLAIN} for name in ("Range", "If-Range", "If-None-Match")
    ],
    "responses": {
        200: {"description": "The file.", "content": FILE, "headers": HEADERS},
        206: {"description": "The bytes that Range asks for.", "content": FILE, "headers": PART},
        304: {"description": "Not Modified"},
        416: {"description": "No byte of the file is in this range.", "headers": {"Content-Range": PLAIN}},
    },
}
