"""Responses with a file from the disk or the store: byte ranges and conditions by ETag (ADR 0094)."""

import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _
from whitenoise.responders import SlicedFile

from store.files import fetch, is_shared, open_stream, stored_files
from store.paths import name_below_var

BLOCK = 64 * 1024  # Bytes read and sent at a time.
# 19 digits suffice for any size of a file; int() raises an error for thousands of them.
ONE_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.ASCII)


class FileVersion(NamedTuple):
    """The content of a file: its size, and an ETag that is equal for equal bytes."""

    path: Path
    size: int
    etag: str


def send_file(
    request: HttpRequest, path: Path, *, name: str | None = None, content_type: str = "", grows: bool = False
) -> HttpResponseBase:
    """Answer with a file as a download: whole, the part that Range asks for, or 304, 412 or 416.

    `name`: the name of the downloaded file. `grows`: the file changes, so its newest version is fetched
    first. Raises Http404 where there is no such file, StoreUnavailable where the store cannot be reached.
    """
    version = find_version(path, grows=grows)
    if version is None:
        raise Http404(_("File not found."))
    unchanged = get_conditional_response(request, etag=version.etag)
    response: HttpResponseBase
    if unchanged is not None:
        response = unchanged
    else:
        byte_range = choose_range(request, version)
        if byte_range is not None and byte_range[0] >= version.size:
            response = HttpResponse(status=416)
            response["Content-Range"] = f"bytes */{version.size}"
        else:
            file: Any = open_stream(version.path)
            status = 200
            if byte_range is not None:
                file, status = SlicedFile(file, *byte_range), 206
            response = sent = FileResponse(
                file, as_attachment=True, filename=name or path.name, status=status, content_type=content_type or None
            )
            sent.block_size = BLOCK
            first, last = byte_range or (0, version.size - 1)
            response["Content-Length"] = last - first + 1
            if byte_range is not None:
                response["Content-Range"] = f"bytes {first}-{last}/{version.size}"
    response["ETag"] = version.etag
    response["Accept-Ranges"] = "bytes"
    return response


def find_version(path: Path, *, grows: bool = False) -> FileVersion | None:
    """Find a file in the store or on this machine's disk; None where neither has it."""
    if grows:
        fetch(path, newest=True)
    elif is_shared() and (row := stored_files(path).filter(name=name_below_var(path)).first()) is not None:
        return FileVersion(path, row.content.size, f'"{row.content_id}"')
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    # Time and size stand for the content, since hashing gigabytes would take too long.
    return FileVersion(path, status.st_size, f'"{status.st_mtime_ns:x}-{status.st_size:x}"')


def choose_range(request: HttpRequest, version: FileVersion) -> tuple[int, int] | None:
    """Return the first and last byte that Range asks for; None for the whole file.

    The whole file is sent, as RFC 9110 allows, for several ranges, for anything that is not a range of
    bytes, and where If-Range names another version. The first byte may be beyond the end of the file.
    """
    # A date in If-Range never equals the ETag, so the whole file is sent, which is always correct.
    match = ONE_RANGE.fullmatch(request.headers.get("Range", "").strip())
    if match is None or request.headers.get("If-Range", version.etag) != version.etag:
        return None
    first, last = match.groups()
    if not first:  # `-500`: the last 500 bytes.
        return (max(version.size - int(last), 0) if int(last) else version.size, version.size - 1) if last else None
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last), version.size - 1) if last else version.size - 1
