"""Files in and out: imports of uploaded files, and exports with their files."""

from datetime import datetime
from functools import partial
from typing import Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, File, Router, Schema, Status
from ninja.decorators import decorate_view
from ninja.files import UploadedFile

from annotation.exports import listing
from annotation.exports.formats import EVERY
from annotation.exports.sets.options import SetOptions, format_defaults
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.imports import importing, uploads
from annotation.models.imports import FileImport, Upload
from annotation.models.snapshots import Snapshot
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import Given
from api.routes.downloads import describe_download
from api.routes.pages import Cursor, Limit, Page, page_of
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from jobs import background, workers
from store.downloads import send_file

router = Router(tags=["files"])
MANAGE = AccessToken.TokenScope.MANAGE
MOST_FILES = 100
# Options of the command in its errors, by the field of ImportOptionsIn.
FIELDS = {
    "--empty keep": 'empty: "keep"',
    "--update": "update: true",
    "--bm25": "bm25",
    "--skip-unknown": "skip_unknown: true",
}


class ImportedFileOut(Schema):
    """Content of a file, as it was recognised or said: `columns` of a table, from its header to the field."""

    name: str
    member: str = Field(description="The file in an archive, or the sheet of a workbook.")
    kind: str = Field(
        description="documents, queries, pairs, qrels, judgments, runs, all (queries, documents and pairs), "
        "queries-pairs, documents-pairs; empty: it is left out, or no worker has looked into it yet."
    )
    columns: dict[str, str]
    problem: str


class ImportOptionsIn(Given):
    """Options of an import before it starts; files that `kinds` and `columns` leave out stay as they are."""

    bm25: int = Field(0, ge=0, le=1000, description="Candidates for each query, found by BM25.")
    graded_by: Literal["", "human", "judge", "reference"] = Field(
        "",
        description="Whose grades the files hold: human ones settle pairs, others measure; empty: human where a file "
        "names its assessors, else reference.",
    )
    query_ids: Literal["num", "position"] = Field(
        "num", description="Where query ids come from: the file, or their places 1, 2, ... in it."
    )
    empty: Literal["refuse", "keep"] = Field("refuse", description="What happens to documents without text.")
    update: bool = Field(False, description="Update documents whose text changed (keeps history).")
    keep_runs: bool = Field(True, description="Runs are added to the benchmark, too.")
    skip_unknown: bool = Field(False, description="Leave out rows that name no known query or document.")
    keep_self: bool = Field(False, description="Keep a query that is a document among its own candidates.")
    kinds: dict[str, str] = Field({}, description="By the file's name, or name/member; skip: leave it out.")
    columns: dict[str, dict[str, str]] = Field({}, description="By the file's name: its header's columns and fields.")


class ImportOut(Schema):
    """An import. Once its check is `ready` (`checked` true) it can be started; `report` counts what was found."""

    number: int
    state: str
    checked: bool
    imported: bool
    files: list[ImportedFileOut]
    report: dict[str, Any]
    error: str
    done: int
    total: int


class SetIn(Given):
    """Options of a training set; docs/exports.md says what each does."""

    split: float = Field(0.9, gt=0, le=1)
    seed: int = Field(0, ge=0, lt=1 << 31)
    teacher: Literal["scores", "votes", "labels"] | None = None
    preset: Literal["paper", "released"] = "paper"
    labels: Literal["resolved", "people", "machine"] = "resolved"
    relevant_from: int | None = Field(None, ge=1, le=100)
    agreement: float | None = Field(None, ge=0, le=1)
    negatives: int | None = Field(None, ge=1, lt=1 << 31)
    documents: int | None = Field(None, ge=1, lt=1 << 31)
    near: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Similarity from which texts stay in one split; null: off; left out: 0.8, off for beir and mteb.",
    )
    balance: bool = False
    balance_entropy: Literal["filled", "prism"] = "filled"
    shape: Literal["pair", "triplet", "n-tuple", "list"] = "pair"
    synthetic_dev: bool = False
    allow_incomplete: bool = False
    named_splits: dict[Literal["train", "dev", "test"], str] = Field(
        {}, description="A kept list of queries, or the split that queries carry, by the split that they become."
    )
    qrels: int | None = Field(
        None, ge=1, lt=1 << 31, description="For beir and mteb: the grades of this version of the qrels, all in test."
    )


class ExportIn(Given):
    """Format and options of an export."""

    format: str = Field(description="Its name: docs/exports.md.", json_schema_extra={"enum": list(EVERY)})
    origins: list[str] | None = Field(None, max_length=50, description="Whose labels; null: everybody's.")
    aggregate: Literal["majority", "dawid-skene", "resolved"] | None = Field(
        None, description="Labels made of all grades, with Dawid-Skene's posterior; null: the labels as they are."
    )
    assessors: list[str] = Field(
        [], max_length=1000, description="With aggregate: whose grades, by name, or people and judges; none: all."
    )
    leave_out_failed: bool = Field(False, description="Without unsettled labels of routes that failed their audit.")
    set: SetIn | None = Field(None, description="Of formats that are training sets.")


class ExportOut(Schema):
    """An export. Its files can be downloaded once it is `ready`."""

    number: int
    format: str
    state: str
    error: str
    files: list[str]
    manifest: dict[str, Any]
    created_at: datetime


@router.post("/collections/{slug:name}/imports", auth=may("admin", MANAGE), response={201: ImportOut})
@decorate_view(once)
def create_import(request: HttpRequest, name: str, files: File[list[UploadedFile]]) -> Any:
    """Upload files; a worker checks what they hold. Nothing is imported before the import is started."""
    scope = scope_of(request)
    if len(files) > MOST_FILES:
        raise BadInput(_("At most %(most)s files at once; put them in a zip archive.") % {"most": MOST_FILES})
    kept: list[Upload] = []
    try:
        for file in files:
            kept.append(uploads.store_whole(scope.collection, scope.user, file))
        return Status(201, show_import(importing.begin_import(scope.collection, scope.user, kept)))
    except BadInput:
        # No row refers to them: they would lie in the store until the next clean-up.
        uploads.delete_complete(kept)
        raise


@router.get("/collections/{slug:name}/imports", auth=may("admin"), response=Page[ImportOut])
def list_imports(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the imports, the oldest first."""
    return page_of(FileImport.objects.filter(collection=scope_of(request).collection), after, limit, show_import)


@router.get("/collections/{slug:name}/imports/{number}", auth=may("admin"), response=ImportOut)
def read_import(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far an import, or its check, is."""
    return show_import(_find_import(request, number))


@router.post(
    "/collections/{slug:name}/imports/{number}/options",
    auth=may("admin", MANAGE),
    response=ImportOut,
)
def correct_import(request: HttpRequest, name: str, number: int, body: ImportOptionsIn) -> Any:
    """Say what the files hold and how they are imported; a worker checks again."""
    row = _find_import(request, number)
    options = {
        "bm25": body.bm25,
        "graded_by": body.graded_by,
        "by_position": body.query_ids == "position",
        "keep_empty": body.empty == "keep",
        "update": body.update,
        "keep_runs": body.keep_runs,
        "skip_unknown": body.skip_unknown,
        "keep_self": body.keep_self,
    }
    importing.correct_import(row, {"kinds": body.kinds, "columns": body.columns}, options)
    row.refresh_from_db()
    return show_import(row)


@router.post(
    "/collections/{slug:name}/imports/{number}/{act}",
    auth=may("admin", MANAGE),
    response=ImportOut,
)
@decorate_view(once)
def control_import(request: HttpRequest, name: str, number: int, act: Literal["start", "cancel", "go-on"]) -> Any:
    """Start an import whose check is ready, cancel it, or do again what was cancelled or failed."""
    row = _find_import(request, number)
    importing.control_import(scope_of(request), row, act)
    row.refresh_from_db()
    return show_import(row)


def _find_import(request: HttpRequest, number: int) -> FileImport:
    return numbered_or_404(FileImport.objects, scope_of(request).collection, number, _("Import not found."))


def show_import(row: FileImport) -> dict[str, Any]:
    """Return an import as the API shows it."""
    ready = row.state == FileImport.READY
    return {
        "number": row.number,
        "state": row.state,
        "checked": ready or not row.dry_run,
        "imported": ready and not row.dry_run,
        "files": [_show_file(one) for one in row.files],
        "report": row.report,
        "error": _name_fields(row.error),
        "done": row.done,
        "total": row.total,
    }


def _name_fields(error: str) -> str:
    """Return an error with the options of the command replaced by the fields of ImportOptionsIn."""
    for option, field in FIELDS.items():
        error = error.replace(option, field)
    return error


def _show_file(file: dict[str, Any]) -> dict[str, Any]:
    holds = file["holds"]
    columns = {one: holds["fields"][one] for one in _header_of(file) if one in holds["fields"]}
    return {
        "name": file["name"],
        "member": file["member"],
        "kind": holds["kind"],
        "columns": columns,
        "problem": holds["problem"],
    }


def _header_of(file: dict[str, Any]) -> list[str]:
    return list(file["holds"]["header"] or ())


@router.get("/collections/{slug:name}/exports", auth=may("admin"), response=Page[ExportOut])
def list_exports(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the exports, the oldest first."""
    return page_of(Snapshot.objects.filter(collection=scope_of(request).collection), after, limit, _show_export)


@router.post("/collections/{slug:name}/exports", auth=may("admin", MANAGE), response={201: ExportOut})
# An export is of one moment (REPEATABLE READ), with a key as without one.
@decorate_view(partial(once, one_view=True))
def create_export(request: HttpRequest, name: str, body: ExportIn) -> Any:
    """Make an export: a small one at once, a large one by a worker (poll it until it is ready)."""
    scope, form = scope_of(request), EVERY.get(body.format)
    if form is None:
        raise BadInput(
            _("unknown format %(name)s; choose one of %(known)s") % {"name": body.format, "known": ", ".join(EVERY)}
        )
    asked = None
    if form.is_set:
        # What is left out is not named: the format may have a default of its own.
        given = body.set.dict(exclude_unset=True) if body.set else {}
        named = tuple(f"{side}={split}" for side, split in given.pop("named_splits", {}).items())
        if given.get("teacher", "") is None:
            del given["teacher"]
        asked = SetOptions(**{**format_defaults(form.name), **given, "named_splits": named})
    elif body.set is not None:
        raise BadInput(_("format %(form)s is no training set, so it takes no options of one") % {"form": form.name})
    snapshot = create_snapshot(
        collection=scope.collection,
        form=form,
        user=scope.user,
        origins=body.origins,
        asked=asked,
        leave_out_failed=body.leave_out_failed,
        aggregate=body.aggregate,
        assessors=body.assessors,
    )
    # Without a worker nobody would make a large one later, so it is made while the request waits.
    if listing.is_large(form, scope.collection) and workers.has_workers():
        transaction.on_commit(lambda: background.enqueue(listing.MAKE, snapshot.pk))
        return Status(201, _show_export(snapshot))
    try:
        write_snapshot(snapshot)
    except BadInput:
        # Without a key there is no transaction to take the row back; it would seem to be made for ever.
        snapshot.delete()
        raise
    return Status(201, _show_export(snapshot))


@router.get("/collections/{slug:name}/exports/{number}", auth=may("admin"), response=ExportOut)
def read_export(request: HttpRequest, name: str, number: int) -> Any:
    """Read an export with its manifest."""
    return _show_export(_find_export(request, number))


@router.get(
    "/collections/{slug:name}/exports/{number}/files/{path:file}",
    auth=may("admin"),
    openapi_extra=describe_download("The file."),
)
def read_export_file(request: HttpRequest, name: str, number: int, file: str) -> Any:
    """Download a file of an export."""
    # Names of the manifest alone are found: no path leads out of the export's folder.
    path = listing.file_of(_find_export(request, number), file)
    if path is None:
        raise Http404(_("File not found."))
    return send_file(request, path, content_type="application/octet-stream")


def _find_export(request: HttpRequest, number: int) -> Snapshot:
    rows = Snapshot.objects.select_related("collection")
    return numbered_or_404(rows, scope_of(request).collection, number, _("Export not found."))


def _show_export(row: Snapshot) -> dict[str, Any]:
    manifest = row.manifest or {}
    return {
        "number": row.number,
        "format": row.format,
        "state": row.state,
        "error": row.error,
        "files": [entry["name"] for entry in manifest.get("files", [])],
        "manifest": manifest,
        "created_at": row.created_at,
    }
