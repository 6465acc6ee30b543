"""API of the models that judge: list, add, change, delete and restore one. A key is written and never read."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from actions.services import Actor
from annotation.home.judge_setup import selectors, services
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.operations import COLLECTION_PATH, operation
from api.paging import Cursor, Limit, Page, page_of
from corpus.models import Collection
from judges.models import JudgeVersion
from judges.models.keys import StoredKey
from judges.stored_keys import STORED

router = Router(tags=["judges"])
PATH = "/judges"
CONTROLS = {"delete": services.delete_model, "restore": services.restore_model, "delete-key": services.delete_key}


class JudgeOut(Schema):
    """A configured model. All collections of the site share it."""

    number: int = Field(description="Of its current version; numbers of earlier versions name the same model.")
    name: str
    version: int
    is_current: bool = Field(description="False: deleted.")
    provider: str
    model: str
    base_url: str = Field(description="Empty: the provider's own.")
    api_key_env: str = Field(description="Name of the variable of the key; empty where a key is stored or none needed.")
    stored_key: str | None = Field(description="Last characters of the stored key; null without one.")
    parameters: dict[str, Any]
    created_at: datetime


def show_judge(judge: JudgeVersion) -> dict[str, Any]:
    """Return the API's form of a model."""
    stores = judge.api_key_env.startswith(STORED)
    endings = StoredKey.objects.filter(name=judge.api_key_env).values_list("ending", flat=True) if stores else ()
    return {
        "number": judge.pk,
        **{name: getattr(judge, name) for name in JudgeOut.model_fields if name not in ("number", "stored_key")},
        "api_key_env": "" if stores else judge.api_key_env,
        "stored_key": next(iter(endings), None),
    }


def find_model(collection: Collection, number: int) -> services.ConfiguredModel:
    """Return a model by the number of one of its versions. Raises Http404."""
    return services.ConfiguredModel(collection, selectors.find_judge(number))


@router.get(COLLECTION_PATH + PATH, auth=may("admin"), response=Page[JudgeOut])
def list_judges(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the configured models, the oldest first."""
    rows = JudgeVersion.objects.filter(is_current=True).exclude(provider="offline")
    return page_of(rows, after, limit, show_judge)


operation(router, services.add_model, "POST", PATH, response=JudgeOut, show=show_judge)
operation(
    router,
    services.change_model,
    "PUT",
    PATH + "/{number}",
    response=JudgeOut,
    show=show_judge,
    find=find_model,
    status=200,
)


@router.post(f"{COLLECTION_PATH}{PATH}/{{number}}/{{act}}", auth=may("own", MANAGE), response=JudgeOut)
@decorate_view(once)
def control_judge(request: HttpRequest, name: str, number: int, act: Literal["delete", "restore", "delete-key"]) -> Any:
    """Delete a model, restore it, or delete its stored key. Its answers are kept; one that is in use stays."""
    scope = scope_of(request)
    return show_judge(CONTROLS[act](Actor.of(scope), find_model(scope.collection, number)))
