"""Exports: how one is made, how far it is, its files."""

from datetime import datetime
from functools import partial
from typing import Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.exports import listing
from annotation.exports.formats import EVERY
from annotation.exports.sets.options import SetOptions, format_defaults
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models.snapshots import Snapshot
from api.authentication import MANAGE, may, scope_of
from api.downloads import DOWNLOAD
from api.idempotency import once
from api.paging import Cursor, Limit, Page, page_of
from api.problems import Given
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from jobs import background, workers
from store.downloads import send_file

router = Router(tags=["files"])


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
            _("Unknown format %(name)s; choose one of %(known)s") % {"name": body.format, "known": ", ".join(EVERY)}
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
        raise BadInput(_("Format %(form)s is no training set, so it takes no options of one") % {"form": form.name})
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
    openapi_extra=DOWNLOAD,
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
