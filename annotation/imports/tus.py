"""The tus protocol 1.0.0 (https://tus.io): creation, core and termination, for whoever uploads a file in parts."""

from base64 import b64decode
from binascii import Error
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from annotation.imports.uploads import UploadConflict, add_part, begin_upload, count_received, delete_upload
from annotation.models.imports import Upload
from annotation.permissions import Scope
from corpus.errors import BadInput

VERSION = "1.0.0"
PART_TYPE = "application/offset+octet-stream"
TusView = Callable[..., HttpResponse]


def speak_tus(*methods: str) -> Callable[[TusView], TusView]:
    """Answer OPTIONS, refuse other versions of the protocol and other methods, and name the version in each answer."""

    def decorate(view: TusView) -> TusView:
        @wraps(view)
        def answer(request: HttpRequest, scope: Scope, **kwargs: int) -> HttpResponse:
            if request.method == "OPTIONS":
                response = HttpResponse(status=204)
                response["Tus-Extension"] = "creation,termination"
                response["Tus-Max-Size"] = str(settings.MAX_FILE_BYTES)
            elif request.method not in methods:
                response = HttpResponse(status=405, headers={"Allow": ", ".join(("OPTIONS", *methods))})
            elif request.headers.get("Tus-Resumable", VERSION) != VERSION:
                response = HttpResponse(status=412)
            else:
                response = view(request, scope, **kwargs)
            response["Tus-Resumable"] = response["Tus-Version"] = VERSION
            response["Cache-Control"] = "no-store"
            return response

        return answer

    return decorate


def read_metadata(header: str) -> dict[str, str]:
    """Return Upload-Metadata as a dict; what cannot be read is left out."""
    found = {}
    for entry in header.split(","):
        key, _space, value = entry.strip().partition(" ")
        try:
            found[key] = b64decode(value, validate=True).decode()
        except (Error, ValueError):
            continue
    return found


def _number(request: HttpRequest, header: str) -> int | None:
    value = request.headers.get(header, "")
    return int(value) if value.isdecimal() and len(value) < 19 else None


@speak_tus("POST")
def create_upload(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Begin an upload: 201 with its address."""
    size = _number(request, "Upload-Length")
    if size is None:
        return HttpResponse("Upload-Length is missing.", status=400, content_type="text/plain")
    said = read_metadata(request.headers.get("Upload-Metadata", ""))
    try:
        upload = begin_upload(scope.collection, scope.user, said.get("filename", ""), size, said.get("modified", ""))
    except BadInput as error:
        status = 413 if size > settings.MAX_FILE_BYTES else 422
        return HttpResponse(str(error), status=status, content_type="text/plain")
    address = reverse("upload", args=[scope.collection.name, upload.pk])
    return HttpResponse(status=201, headers={"Location": address, "Upload-Offset": "0"})


@speak_tus("HEAD", "PATCH", "DELETE")
def change_upload(request: HttpRequest, scope: Scope, upload: int) -> HttpResponse:
    """Say how much has come, take the next part, or throw the upload away."""
    rows = Upload.objects.filter(collection=scope.collection, owner=scope.user, file_import=None)
    found = get_object_or_404(rows.select_related("collection"), pk=upload)
    if request.method == "DELETE":
        delete_upload(found)
        return HttpResponse(status=204)
    if request.method == "HEAD":
        received = count_received(found)
        return HttpResponse(headers={"Upload-Offset": str(received), "Upload-Length": str(found.size)})
    offset = _number(request, "Upload-Offset")
    if request.content_type != PART_TYPE or offset is None:
        return HttpResponse(f"Send {PART_TYPE} with Upload-Offset.", status=415, content_type="text/plain")
    try:
        received = add_part(found, offset, request.read)
    except UploadConflict:
        return HttpResponse(status=409, headers={"Upload-Offset": str(count_received(found))})
    return HttpResponse(status=204, headers={"Upload-Offset": str(received)})
