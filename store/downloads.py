"""Answers with a file: byte ranges, conditions by ETag, from the disk or the store, a block at a time (ADR 0094)."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _
from whitenoise.responders import SlicedFile

from store.files import fetch, is_shared, open_stream, stored_files
from store.paths import name_below_var

BLOCK = 64 * 1024  # Bytes that are read and sent at a time.
# So many digits hold every size of a file; int() raises an error for thousands of them.
ONE_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.ASCII)


class FileVersion(NamedTuple):
    """A sent file's content as every machine names it: equal ETags, equal bytes."""

    path: Path
    size: int
    etag: str


def send_file(
    request: HttpRequest, path: Path, *, name: str | None = None, content_type: str = "", grows: bool = False
) -> HttpResponseBase:
    """Answer with a file as a download: the whole, or the part that Range asks for, or 304, 412 or 416.

    `name`: what the reader's file is called. `grows`: of files that change, the newest version is
    fetched first. Raises Http404 where there is no such file, StoreUnavailable where the store has
    it and is away.
    """
    found = find_version(path, grows=grows)
    if found is None:
        raise Http404(_("File not found."))
    early = get_conditional_response(request, etag=found.etag)
    response = early if early is not None else _send_bytes(request, found, name or path.name, content_type)
    response["ETag"] = found.etag
    response["Accept-Ranges"] = "bytes"
    return response


def find_version(path: Path, *, grows: bool = False) -> FileVersion | None:
    """Find a file on this machine's disk, else in the store; None where neither has it."""
    if grows:
        fetch(path, newest=True)
    elif is_shared() and (row := stored_files(path).filter(name=name_below_var(path)).first()) is not None:
        return FileVersion(path, row.content.size, f'"{row.content_id}"')
    if not path.is_file():
        return None
    # Nobody hashes gigabytes to answer a request: the time and the size change with the content.
    found = path.stat()
    return FileVersion(path, found.st_size, f'"{found.st_mtime_ns:x}-{found.st_size:x}"')


def _send_bytes(request: HttpRequest, found: FileVersion, name: str, content_type: str) -> HttpResponseBase:
    wanted = choose_range(request, found)
    if wanted is not None and wanted[0] >= found.size:
        response: HttpResponseBase = HttpResponse(status=416)
        response["Content-Range"] = f"bytes */{found.size}"
        return response
    file: Any = open_stream(found.path)
    status = 200
    if wanted is not None:
        file, status = SlicedFile(file, *wanted), 206
    response = FileResponse(file, as_attachment=True, filename=name, status=status, content_type=content_type or None)
    response.block_size = BLOCK
    first, last = wanted or (0, found.size - 1)
    response["Content-Length"] = last - first + 1
    if wanted is not None:
        response["Content-Range"] = f"bytes {first}-{last}/{found.size}"
    return response


def choose_range(request: HttpRequest, found: FileVersion) -> tuple[int, int] | None:
    """Return the first and the last byte that are asked for, None for the whole file.

    The whole is sent, as RFC 9110 allows, for several ranges at once, for what is no range of
    bytes, and where If-Range names another version. A first byte at or after the end of the file
    cannot be sent.
    """
    # A date in If-Range never equals the ETag, and so gets the whole file, which is always right.
    given = ONE_RANGE.fullmatch(request.headers.get("Range", "").strip())
    if given is None or request.headers.get("If-Range", found.etag) != found.etag:
        return None
    first, last = given.groups()
    if not first:  # The last so many bytes.
        return (max(found.size - int(last), 0) if int(last) else found.size, found.size - 1) if last else None
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last), found.size - 1) if last else found.size - 1
