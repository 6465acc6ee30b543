"""Views of the tus protocol 1.0.0 for resumable uploads (https://tus.io), which the pages and the API share."""

from base64 import b64decode
from binascii import Error
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import http_date
from django.utils.translation import gettext as _

from annotation.access.permissions import Scope
from annotation.data.imports.uploads import (
    Checksum,
    DamagedPart,
    UploadConflict,
    add_part,
    begin_upload,
    count_received,
    delete_upload,
    expires_at,
    free_uploads,
)
from annotation.models.imports import Upload
from corpus.errors import BadInput

VERSION = "1.0.0"
EXTENSIONS = "creation,termination,expiration,checksum"
PART_TYPE = "application/offset+octet-stream"
ALGORITHMS = {"sha1": 20, "sha256": 32}  # Lengths of their checksums in bytes.
DAMAGED = 460  # The protocol's status for a checksum that does not match.
TusView = Callable[..., HttpResponse]


def speak_tus(*methods: str) -> Callable[[TusView], TusView]:
    """Answer OPTIONS, refuse other versions and methods, and name the protocol's version in each response."""

    def decorate(view: TusView) -> TusView:
        @wraps(view)
        def answer(request: HttpRequest, scope: Scope, **kwargs: int) -> HttpResponse:
            if request.method == "OPTIONS":
                response = HttpResponse(status=204)
                response["Tus-Extension"] = EXTENSIONS
                response["Tus-Max-Size"] = str(settings.MAX_FILE_BYTES)
                response["Tus-Checksum-Algorithm"] = ",".join(ALGORITHMS)
            elif request.method not in methods:
                response = HttpResponse(status=405, headers={"Allow": ", ".join(("OPTIONS", *methods))})
            elif request.headers.get("Tus-Resumable", VERSION) != VERSION:
                response = _refuse(412, f"Tus-Resumable: {VERSION}")
            else:
                response = view(request, scope, **kwargs)
            response["Tus-Resumable"] = response["Tus-Version"] = VERSION
            response["Cache-Control"] = "no-store"
            return response

        return answer

    return decorate


def _refuse(status: int, reason: str, **headers: str) -> HttpResponse:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(reason, status=status, content_type="text/plain; charset=utf-8", headers=fields)


def read_checksum(header: str) -> Checksum | None:
    """Return Upload-Checksum, None where it is absent. Raises BadInput for a malformed one or an unknown algorithm."""
    if not header:
        return None
    algorithm, _space, value = header.partition(" ")
    try:
        digest = b64decode(value, validate=True)
    except (Error, ValueError):
        digest = b""
    if len(digest) == ALGORITHMS.get(algorithm):
        return Checksum(algorithm, digest)
    message = _("Upload-Checksum is an algorithm (%(known)s), a space and the checksum in Base64")
    raise BadInput(message % {"known": ", ".join(ALGORITHMS)})


def _number(request: HttpRequest, header: str) -> int | None:
    # isdecimal() accepts digits of every script; a number of 19 digits may not fit into PostgreSQL's bigint.
    value = request.headers.get(header, "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 19 else None


@speak_tus("POST")
def create_upload(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Begin an upload: 201 with its address, which is this address and a number."""
    size = _number(request, "Upload-Length")
    if size is None:
        return _refuse(400, _("Upload-Length is missing."))
    # Entries that cannot be decoded are left out.
    header = request.headers.get("Upload-Metadata", "")
    metadata = {}
    for entry in header.split(","):
        key, _space, value = entry.strip().partition(" ")
        try:
            metadata[key] = b64decode(value, validate=True).decode()
        except (Error, ValueError):
            continue
    try:
        upload = begin_upload(
            scope.collection, scope.user, metadata.get("filename", ""), size, metadata.get("modified", "")
        )
    except BadInput as error:
        return _refuse(413 if size > settings.MAX_FILE_BYTES else 422, str(error))
    # The addresses of the pages end with a slash, those of the API without.
    slash = "/" if request.path.endswith("/") else ""
    headers = {"Location": f"{request.path.rstrip('/')}/{upload.pk}{slash}", "Upload-Offset": "0"}
    return HttpResponse(status=201, headers={**headers, **_expiry(upload)})


def _expiry(upload: Upload) -> dict[str, str]:
    return {"Upload-Expires": http_date(expires_at(upload).timestamp())}


@speak_tus("HEAD", "PATCH", "DELETE")
def change_upload(request: HttpRequest, scope: Scope, upload: int) -> HttpResponse:
    """Say how many bytes have been received, add the next part, or delete the upload."""
    row = get_object_or_404(free_uploads(scope.collection, scope.user), pk=upload)
    if request.method == "DELETE":
        delete_upload(row)
        return HttpResponse(status=204)
    if request.method == "HEAD":
        received = count_received(row)
        progress = {"Upload-Offset": str(received), "Upload-Length": str(row.size)}
        return HttpResponse(headers={**progress, **_expiry(row)})
    offset = _number(request, "Upload-Offset")
    if request.content_type != PART_TYPE or offset is None:
        return _refuse(415, _("Send %(type)s with Upload-Offset.") % {"type": PART_TYPE})
    try:
        checksum = read_checksum(request.headers.get("Upload-Checksum", ""))
        received = add_part(row, offset, request.read, checksum)
    except BadInput as error:
        return _refuse(400, str(error))
    except UploadConflict:
        reason = _("The part does not begin where the upload ends, or another request adds to it.")
        return _refuse(409, reason, Upload_Offset=str(count_received(row)))
    except DamagedPart:
        return _refuse(DAMAGED, _("The part was damaged on its way: send it again."))
    return HttpResponse(status=204, headers={"Upload-Offset": str(received), **_expiry(row)})
