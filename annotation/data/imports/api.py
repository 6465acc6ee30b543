"""REST API of imports: files sent in one request, or uploaded in parts by the tus protocol 1.0.0."""

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from ninja import Field, File, Router, Schema, Status
from ninja.decorators import decorate_view
from ninja.files import UploadedFile

from annotation.data.imports import importing, tus, uploads
from annotation.data.imports.page import find_import
from annotation.models.imports import FileImport, Upload
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.operations import COLLECTION_PATH, operation
from api.paging import Cursor, Limit, Page, find_row, page_of
from api.problems import JSON, RequestBody, describe_refusals
from corpus.errors import BadInput

router = Router(tags=["files"])
MOST_FILES = 100
# Statuses of the tus protocol beside the usual ones.
TUS_REFUSALS = describe_refusals(415, tus.DAMAGED)
WHOLE = "Upload-Length"


class ImportedFileOut(Schema):
    """What a file contains, as recognised or corrected. `columns`: those of a table, header to field."""

    name: str
    member: str = Field(description="The file in an archive, or the sheet of a workbook.")
    kind: str = Field(
        description="documents, queries, pairs, qrels, judgments, runs, all (queries, documents and pairs), "
        "queries-pairs, documents-pairs; empty: it is left out, or no worker has looked into it yet."
    )
    columns: dict[str, str]
    problem: str


class ImportOut(Schema):
    """An import. It can be started once `checked` is true; `report` counts what the files contain."""

    number: int
    state: str
    checked: bool
    imported: bool
    files: list[ImportedFileOut]
    report: dict[str, Any]
    error: str
    done: int
    total: int


def show_import(row: FileImport) -> dict[str, Any]:
    """Return an import as the API shows it."""
    ready = row.state == FileImport.READY
    return {
        "number": row.number,
        "state": row.state,
        "checked": ready or not row.dry_run,
        "imported": ready and not row.dry_run,
        "files": [
            {
                "name": file["name"],
                "member": file["member"],
                "kind": file["holds"]["kind"],
                "columns": {column: fields[column] for column in file["holds"]["header"] or () if column in fields},
                "problem": file["holds"]["problem"],
            }
            for file in row.files
            for fields in [file["holds"]["fields"]]
        ],
        "report": row.report,
        "error": row.error,
        "done": row.done,
        "total": row.total,
    }


operation(
    router,
    importing.correct_import,
    "POST",
    "/imports/{number}/options",
    response=ImportOut,
    show=show_import,
    find=find_import,
    status=200,
)


@router.post(COLLECTION_PATH + "/imports", auth=may("admin", MANAGE), response={201: ImportOut})
@decorate_view(once)
def create_import(request: HttpRequest, name: str, files: File[list[UploadedFile]]) -> Any:
    """Upload files; a worker checks what they contain. Nothing is imported until the import is started."""
    scope = scope_of(request)
    if len(files) > MOST_FILES:
        raise BadInput(_("At most %(most)s files at once; put them in a zip archive.") % {"most": MOST_FILES})
    return Status(201, show_import(importing.import_files(scope.collection, scope.user, files)))


@router.get(COLLECTION_PATH + "/imports", auth=may("admin"), response=Page[ImportOut])
def list_imports(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the imports, the oldest first."""
    return page_of(FileImport.objects.filter(collection=scope_of(request).collection), after, limit, show_import)


@router.get(COLLECTION_PATH + "/imports/{number}", auth=may("admin"), response=ImportOut)
def read_import(request: HttpRequest, name: str, number: int) -> Any:
    """Read the progress of an import or of its check."""
    return show_import(find_import(scope_of(request).collection, number))


@router.post(COLLECTION_PATH + "/imports/{number}/{act}", auth=may("admin", MANAGE), response=ImportOut)
@decorate_view(once)
def control_import(request: HttpRequest, name: str, number: int, act: Literal["start", "cancel", "go-on"]) -> Any:
    """Start an import whose check is ready, cancel it, or resume one that was cancelled or failed."""
    row = find_import(scope_of(request).collection, number)
    importing.control_import(scope_of(request), row, act)
    row.refresh_from_db()
    return show_import(row)


def _header(name: str, meaning: str, kind: str = "string", *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": meaning, "required": required, "schema": {"type": kind}}


def _headers_out(*names: str) -> dict[str, Any]:
    return {name: {"schema": {"type": "string"}} for name in ("Tus-Resumable", *names)}


RESUMABLE = _header("Tus-Resumable", "1.0.0, and nothing else.")
CREATED = {"description": "Created", "headers": _headers_out("Location", "Upload-Offset", "Upload-Expires")}
RECEIVED = {"description": "How much has come", "headers": _headers_out("Upload-Offset", WHOLE, "Upload-Expires")}
ADDED = {"description": "The part is there", "headers": _headers_out("Upload-Offset", "Upload-Expires")}


class UploadOut(Schema):
    """An upload that no import uses yet. `received`: bytes received so far, where the next part begins."""

    number: int
    name: str
    size: int
    received: int
    expires_at: datetime = Field(description="It may be deleted then, unless another part comes.")


class UploadedFilesIn(RequestBody):
    """Completed uploads."""

    uploads: list[int] = Field(min_length=1, max_length=MOST_FILES, description="Their numbers.")


def _answer(view: Callable[..., HttpResponse], request: HttpRequest, **kwargs: int) -> HttpResponse:
    """Return the response of a tus view, with refusals as problems (RFC 9457)."""
    response = view(request, scope_of(request), **kwargs)
    status = response.status_code
    if status < 400:
        return response
    # Only tus uses 460, so Python has no phrase for it.
    title = _("The checksum does not match") if status == tus.DAMAGED else HTTPStatus(status).phrase
    body = {"title": title, "status": status, "detail": response.content.decode() or title, "errors": []}
    # The headers of tus stay: after a refusal clients read from them where to resume.
    headers = {name: value for name, value in response.items() if name.startswith(("Tus-", "Upload-"))}
    return JsonResponse(body, status=status, content_type=JSON, headers=headers)


def _find_upload(request: HttpRequest, number: int) -> Upload:
    scope = scope_of(request)
    return find_row(uploads.free_uploads(scope.collection, scope.user), number, _("Upload not found."))


@router.post(COLLECTION_PATH + "/uploads/import", auth=may("admin", MANAGE), response={201: ImportOut})
@decorate_view(once)
def import_uploads(request: HttpRequest, name: str, body: UploadedFilesIn) -> Any:
    """Make an import of completed uploads; a worker checks what they contain."""
    rows = [_find_upload(request, number) for number in dict.fromkeys(body.uploads)]
    scope = scope_of(request)
    return Status(201, show_import(importing.begin_import(scope.collection, scope.user, rows)))


@router.get(COLLECTION_PATH + "/uploads", auth=may("admin"), response=Page[UploadOut])
def list_uploads(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List your uploads that no import uses yet, the oldest first."""
    scope = scope_of(request)

    def show(row: Upload) -> dict[str, Any]:
        progress = {"received": uploads.count_received(row), "expires_at": uploads.expires_at(row)}
        return {"number": row.pk, "name": row.name, "size": row.size, **progress}

    return page_of(uploads.free_uploads(scope.collection, scope.user), after, limit, show)


@router.post(
    COLLECTION_PATH + "/uploads",
    auth=may("admin", MANAGE),
    response={201: None},
    openapi_extra={
        "parameters": [
            RESUMABLE,
            _header(WHOLE, "Bytes of the file.", "integer"),
            _header("Upload-Metadata", "filename, a space and the name in Base64."),
        ],
        "responses": {201: CREATED, **TUS_REFUSALS},
    },
)
def create_upload(request: HttpRequest, name: str) -> Any:
    """Begin an upload in parts (tus 1.0.0): `Location` is its address."""
    return _answer(tus.create_upload, request)


@router.api_operation(
    ["HEAD"],
    COLLECTION_PATH + "/uploads/{number}",
    auth=may("admin", MANAGE),
    openapi_extra={"parameters": [RESUMABLE], "responses": {200: RECEIVED}},
)
def read_upload(request: HttpRequest, name: str, number: int) -> Any:
    """Read how many bytes of an upload have been received: `Upload-Offset`."""
    return _answer(tus.change_upload, request, upload=_find_upload(request, number).pk)


@router.patch(
    COLLECTION_PATH + "/uploads/{number}",
    auth=may("admin", MANAGE),
    response={204: None},
    openapi_extra={
        "parameters": [
            RESUMABLE,
            _header("Upload-Offset", "Where the part begins: where the upload ends.", "integer"),
            _header("Upload-Checksum", "sha1 or sha256, a space and the checksum of the part in Base64."),
        ],
        "requestBody": {
            "content": {tus.PART_TYPE: {"schema": {"type": "string", "format": "binary"}}},
            "required": True,
        },
        "responses": {204: ADDED, **TUS_REFUSALS},
    },
)
def add_upload_part(request: HttpRequest, name: str, number: int) -> Any:
    """Add a part to an upload. If the connection breaks, received bytes stay, except of a part with a checksum."""
    return _answer(tus.change_upload, request, upload=_find_upload(request, number).pk)


@router.delete(
    COLLECTION_PATH + "/uploads/{number}",
    auth=may("admin", MANAGE),
    response={204: None},
    openapi_extra={
        "parameters": [RESUMABLE],
        "responses": {204: {"description": "Deleted", "headers": _headers_out()}},
    },
)
def delete_upload(request: HttpRequest, name: str, number: int) -> Any:
    """Delete an upload that no import uses."""
    return _answer(tus.change_upload, request, upload=_find_upload(request, number).pk)
