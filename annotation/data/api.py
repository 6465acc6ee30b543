"""Queries, documents, pairs and judgments of a collection, and its settings."""

from datetime import datetime
from typing import Annotated, Any

import ninja
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema
from pydantic import create_model

from actions.services import Actor
from annotation.data.pair_filters import NAMES as TITLES
from annotation.data.pairs import get_campaign, matching_pairs, read_filters
from annotation.work.settings import guidelines, services
from api.authentication import MANAGE, may, scope_of
from api.etags import require_match
from api.paging import Cursor, Limit, Page, find_row, page_of
from corpus.collections.arm_allocation import ARMS
from corpus.collections.options import SettingsOptions
from corpus.holding import hold
from corpus.models import Collection, CurrentJudgment, Document, Pair, Query

router = Router(tags=["collections"])


class QueryOut(Schema):
    """A query: `id` is the file's own, `number` the database's."""

    number: int
    id: str
    text: str
    answers: list[str]
    instruction: str
    metadata: dict[str, Any]


class DocumentOut(Schema):
    """A document: `id` is the file's own, `number` the database's."""

    number: int
    id: str
    title: str
    text: str
    metadata: dict[str, Any]


class PairOut(Schema):
    """A pair of a query and a document, with its label where it has one."""

    number: int
    query: str
    document: str
    grade: int | None
    origin: str | None
    teacher_score: float | None


TEXT = "%s, as in the address of the table of pairs."
FILTERS: dict[str, Any] = {
    key: (str, Field("", max_length=200, description=TEXT % title)) for key, title in TITLES.items()
}
PairFiltersIn: Any = create_model("PairFiltersIn", __base__=Schema, **FILTERS)


class JudgmentOut(Schema):
    """A current judgment, neither superseded nor withdrawn."""

    number: int
    query: str
    document: str
    assessor: str
    kind: str
    step: str
    grade: int
    comment: str
    created_at: datetime


class ArmsOut(Schema):
    """Weights by which the experiment arms are drawn."""

    shown: int
    hidden: int
    reveal: int


class SettingsOut(Schema):
    """Current settings of a collection."""

    title: str
    rubric: str
    overlap: int
    order: str
    rounds: str
    lease_minutes: int
    min_judgment_ms: int
    relevant_from: int
    grade_names: list[str]
    daily_target: int
    document_format: str
    long_documents: str
    hourly_rate: float | None
    budget: float | None
    daily_budget: float | None
    lab: bool
    arms: ArmsOut
    instruction: str
    instruction_version: int
    guidelines: str
    guidelines_version: int


@router.get("/collections/{slug:name}/queries", auth=may("results"), response=Page[QueryOut])
def list_queries(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the queries in their current versions."""
    rows = Query.objects.filter(collection=scope_of(request).collection, is_current=True)
    return page_of(rows, after, limit, lambda row: _show_text(row, QueryOut))


@router.get("/collections/{slug:name}/documents", auth=may("results"), response=Page[DocumentOut])
def list_documents(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the documents in their current versions."""
    rows = Document.objects.filter(collection=scope_of(request).collection, is_current=True)
    return page_of(rows, after, limit, lambda row: _show_text(row, DocumentOut))


def _show_text(row: Query | Document, schema: type[Schema]) -> dict[str, Any]:
    fields = {"number": row.pk, "id": row.external_id}
    return fields | {name: getattr(row, name) for name in schema.model_fields if name not in fields}


@router.get("/collections/{slug:name}/pairs", auth=may("results"), response=Page[PairOut])
def list_pairs(
    request: HttpRequest,
    name: str,
    filters: Annotated[PairFiltersIn, ninja.Query()],
    after: Cursor = 0,
    limit: Limit = 100,
) -> Any:
    """List the pairs with their labels; with filters, the pairs that the table of pairs shows with them."""
    rows, scope = _pairs(request), scope_of(request)
    collection, table = scope.collection, read_filters(scope, filters.model_dump())
    if table.is_set:
        matches = matching_pairs(collection, table, campaign=get_campaign(collection, table.campaign))
        rows = rows.filter(pk__in=matches.order_by().values("pk"))
    return page_of(rows, after, limit, _show_pair)


@router.get("/collections/{slug:name}/pairs/{number}", auth=may("results"), response=PairOut)
def read_pair(request: HttpRequest, name: str, number: int) -> Any:
    """Read one pair with its label."""
    return _show_pair(find_row(_pairs(request), number, _("Pair not found.")))


def _pairs(request: HttpRequest) -> Any:
    rows = Pair.objects.filter(collection=scope_of(request).collection)
    return rows.select_related("query", "document").prefetch_related("labels")


def _show_pair(row: Pair) -> dict[str, Any]:
    label = next((label for label in row.labels.all() if label.aspect_id is None), None)
    return {
        "number": row.pk,
        "query": row.query.external_id,
        "document": row.document.external_id,
        "grade": label and label.grade,
        "origin": label and label.origin,
        "teacher_score": row.teacher_score,
    }


@router.get("/collections/{slug:name}/judgments", auth=may("admin"), response=Page[JudgmentOut])
def list_judgments(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the judgments of people, imports and adjudicators that are current, on whole pairs."""
    rows = CurrentJudgment.objects.filter(pair__collection=scope_of(request).collection, aspect=None)
    return page_of(rows.select_related("pair__query", "pair__document", "assessor"), after, limit, _show_judgment)


def _show_judgment(row: CurrentJudgment) -> dict[str, Any]:
    pair = {"query": row.pair.query.external_id, "document": row.pair.document.external_id}
    fields = {name: getattr(row, name) for name in ("step", "grade", "comment", "created_at")}
    return {"number": row.pk, **pair, "assessor": row.assessor.name, "kind": row.assessor.kind, **fields}


@router.get("/collections/{slug:name}/settings", auth=may("admin"), response=SettingsOut)
def read_settings(request: HttpRequest, name: str) -> Any:
    """Read the settings."""
    return _show_settings(scope_of(request).collection)


@router.patch("/collections/{slug:name}/settings", auth=may("admin", MANAGE), response=SettingsOut)
def change_settings(request: HttpRequest, name: str, body: SettingsOptions) -> Any:
    """Change the given settings, all of them or none."""
    scope = scope_of(request)
    with transaction.atomic():
        # The lock comes before the comparison: of two changes with one ETag the second is refused.
        collection = hold(Collection.objects, scope.collection.pk)
        require_match(request, SettingsOut, _show_settings(collection))
        services.change_settings(Actor.of(scope), collection, body)
        # Read again: the services write rows of their own, and the object here may be older.
        return _show_settings(Collection.objects.get(pk=collection.pk))


def _show_settings(row: Collection) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in SettingsOut.__annotations__ if hasattr(row, name)}
    instruction_version, instruction = services.current_instruction(row)
    guidelines_version, guidelines_text = guidelines.current(row)
    return {
        **values,
        "arms": {arm: row.arms.get(arm, 0) for arm in ARMS},
        "instruction": instruction,
        "instruction_version": instruction_version,
        "guidelines": guidelines_text,
        "guidelines_version": guidelines_version,
    }
