"""API operations on versions of the qrels: list, create, download."""

from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.problems import RequestBody
from benchmark.models import Qrels
from benchmark.qrels import reading, versions
from benchmark.runs.api import TEXT_FILE
from corpus.chart_downloads import send_lines
from corpus.collections.audit_log import record_act

router = Router(tags=["runs"])


class QrelsOut(Schema):
    """A version of the qrels; it never changes."""

    number: int
    kind: str
    note: str
    counts: dict[str, Any]
    created_at: datetime


class QrelsIn(RequestBody):
    """Content of a new version of the qrels."""

    kind: Literal["original", "labels"] = Field(description="The imported reference grades, or all labels of now.")


@router.get("/collections/{slug:name}/qrels", auth=may("admin"), response=list[QrelsOut])
def list_qrels(request: HttpRequest, name: str) -> Any:
    """List the versions of the qrels, the oldest first."""
    return list(Qrels.objects.filter(collection=scope_of(request).collection).order_by("number"))


@router.post("/collections/{slug:name}/qrels", auth=may("admin", MANAGE), response={201: QrelsOut})
@decorate_view(once)
def make_qrels(request: HttpRequest, name: str, body: QrelsIn) -> Any:
    """Make a version of the qrels; where nothing changed since the last one, it is that one."""
    scope = scope_of(request)
    make = {"original": versions.original_version, "labels": versions.labels_version}[body.kind]
    with transaction.atomic():
        version = make(scope.collection, by=scope.user.username)
        record_act(scope, "qrels.made", version=version.number, what=body.kind)
    version.refresh_from_db()
    return Status(201, version)


@router.get("/collections/{slug:name}/qrels/{number}/file", auth=may("admin"), openapi_extra=TEXT_FILE)
def read_qrels_file(request: HttpRequest, name: str, number: int) -> Any:
    """Download a version of the qrels in TREC's format, by its number."""
    collection = scope_of(request).collection
    # The column is a PostgreSQL integer; a larger number would be an error of the database.
    if not 0 < number < 1 << 31 or not (version := Qrels.objects.filter(collection=collection, number=number).first()):
        raise Http404(_("Qrels not found."))
    return send_lines(reading.write_trec(version), f"{collection.name}-qrels-{number}.txt")
