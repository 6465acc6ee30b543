"""REST API of collections: list, create, read."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.access.audit_log.recording import record
from annotation.models import Membership
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import RequestBody
from corpus.errors import BadInput
from corpus.models import Collection

router = Router(tags=["collections"])


class CollectionIn(RequestBody):
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


@router.get("/collections", auth=may("site"), response=list[CollectionOut])
def list_collections(request: HttpRequest) -> Any:
    """List the collections that the token reaches, by name."""
    token: AccessToken = request.access_token  # type: ignore[attr-defined]
    if token.collection is not None:
        memberships = Membership.objects.filter(user=token.user, collection=token.collection, is_active=True)
        return [token.collection] if token.user.is_owner or memberships.exists() else []
    rows = Collection.objects.order_by("name")
    if token.user.is_owner:
        return rows
    return rows.filter(memberships__user=token.user, memberships__is_active=True)


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
