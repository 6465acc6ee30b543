"""Collections, their queries, documents, pairs and judgments."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from annotation.models import Membership, User
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import Given
from api.routes.pages import Cursor, Limit, Page, find_row, page_of
from corpus.errors import BadInput
from corpus.models import Collection, CurrentJudgment, Document, Pair, Query

router = Router(tags=["collections"])
MANAGE = AccessToken.TokenScope.MANAGE


class CollectionIn(Given):
    """A new collection."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=63, description="Used in addresses; never changes.")
    title: str = Field("", max_length=200)
    instruction: str = Field(
        "", max_length=50_000, description="What makes a document relevant; empty: a built-in rubric."
    )
    grades: int = Field(3, ge=1, le=100, description="The highest grade; 0 is the lowest.")


class CollectionOut(Schema):
    """A collection and its scale."""

    name: str
    title: str
    instruction: str
    grades: int
    relevant_from: int
    overlap: int
    created_at: datetime


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


class JudgmentOut(Schema):
    """A judgment that holds now: superseded and withdrawn ones are left out."""

    number: int
    query: str
    document: str
    assessor: str
    kind: str
    step: str
    grade: int
    comment: str
    created_at: datetime


@router.get("/collections", auth=may("site"), response=list[CollectionOut])
def list_collections(request: HttpRequest) -> Any:
    """List the collections that the token reaches, by name."""
    token: AccessToken = request.access_token  # type: ignore[attr-defined]
    if token.collection is not None:
        return [token.collection] if _is_member(token.user, token.collection) else []
    rows = Collection.objects.order_by("name")
    if token.user.is_owner:
        return rows
    return rows.filter(memberships__user=token.user, memberships__is_active=True)


def _is_member(user: User, collection: Collection) -> bool:
    return user.is_owner or Membership.objects.filter(user=user, collection=collection, is_active=True).exists()


@router.post("/collections", auth=may("own-site", MANAGE), response={201: CollectionOut})
@decorate_view(once)
def create_collection(request: HttpRequest, body: CollectionIn) -> Any:
    """Create a collection. Needs an owner's token for all collections."""
    collection = Collection(**body.dict())
    try:
        collection.full_clean()
    except DjangoValidationError as error:
        raise BadInput("; ".join(error.messages)) from error
    with transaction.atomic():
        collection.save()
        record(request.scope, "collection.made", collection)  # type: ignore[attr-defined]
    collection.refresh_from_db()
    return Status(201, collection)


@router.get("/collections/{slug:name}", auth=may("member"), response=CollectionOut)
def read_collection(request: HttpRequest, name: str) -> Any:
    """Read a collection."""
    return scope_of(request).collection


@router.get("/collections/{slug:name}/queries", auth=may("admin"), response=Page[QueryOut])
def list_queries(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the queries in their current versions."""
    rows = Query.objects.filter(collection=scope_of(request).collection, is_current=True)
    return page_of(rows, after, limit, _show_query)


def _show_query(row: Query) -> dict[str, Any]:
    texts = {"text": row.text, "answers": row.answers, "instruction": row.instruction}
    return {"number": row.pk, "id": row.external_id, **texts, "metadata": row.metadata}


@router.get("/collections/{slug:name}/documents", auth=may("admin"), response=Page[DocumentOut])
def list_documents(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the documents in their current versions."""
    rows = Document.objects.filter(collection=scope_of(request).collection, is_current=True)
    return page_of(rows, after, limit, _show_document)


def _show_document(row: Document) -> dict[str, Any]:
    texts = {"title": row.title, "text": row.text}
    return {"number": row.pk, "id": row.external_id, **texts, "metadata": row.metadata}


@router.get("/collections/{slug:name}/pairs", auth=may("admin"), response=Page[PairOut])
def list_pairs(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the pairs with their labels."""
    return page_of(_pairs(request), after, limit, _show_pair)


@router.get("/collections/{slug:name}/pairs/{number}", auth=may("admin"), response=PairOut)
def read_pair(request: HttpRequest, name: str, number: int) -> Any:
    """Read one pair with its label."""
    return _show_pair(find_row(_pairs(request), number, _("Pair not found.")))


def _pairs(request: HttpRequest) -> Any:
    rows = Pair.objects.filter(collection=scope_of(request).collection)
    return rows.select_related("query", "document").prefetch_related("labels")


def _show_pair(row: Pair) -> dict[str, Any]:
    label = next((one for one in row.labels.all() if one.aspect_id is None), None)
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
    """List the judgments of people, imports and adjudicators that hold now, on whole pairs."""
    rows = CurrentJudgment.objects.filter(pair__collection=scope_of(request).collection, aspect=None)
    return page_of(rows.select_related("pair__query", "pair__document", "assessor"), after, limit, _show_judgment)


def _show_judgment(row: CurrentJudgment) -> dict[str, Any]:
    who = {"assessor": row.assessor.name, "kind": row.assessor.kind, "step": row.step}
    pair = {"query": row.pair.query.external_id, "document": row.pair.document.external_id}
    return {
        "number": row.pk,
        **pair,
        **who,
        "grade": row.grade,
        "comment": row.comment,
        "created_at": row.created_at,
    }
