"""API of exports: making one, its state and manifest, its files."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Router, Schema

from annotation.exports import listing
from annotation.exports.services import create_export
from annotation.models.snapshots import Snapshot
from api.authentication import may, scope_of
from api.downloads import DOWNLOAD
from api.operations import operation
from api.paging import Cursor, Limit, Page, page_of
from corpus.numbered import numbered_or_404
from store.downloads import send_file

router = Router(tags=["files"])


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
    # Only names of the manifest are accepted, so no path leads out of the export's folder.
    path = listing.find_file(_find_export(request, number), file)
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


# An export shows one moment (REPEATABLE READ), also with an idempotency key.
operation(router, create_export, "POST", "/exports", response=ExportOut, show=_show_export, one_view=True)
