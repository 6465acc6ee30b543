"""API of the models that judge: list them."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from api.authentication import may
from api.operations import COLLECTION_PATH
from api.paging import Cursor, Limit, Page, page_of
from judges.models import JudgeVersion
from judges.models.keys import StoredKey
from judges.stored_keys import STORED

router = Router(tags=["judges"])


class JudgeOut(Schema):
    """A configured model. All collections of the site share it."""

    number: int = Field(description="Of its current version.")
    name: str
    version: int
    provider: str
    model: str
    base_url: str = Field(description="Empty: the provider's own.")
    api_key_env: str = Field(description="Name of the variable of the key; empty where a key is stored or none needed.")
    stored_key: str | None = Field(description="Last characters of the stored key; null without one.")
    created_at: datetime


@router.get(f"{COLLECTION_PATH}/judges", auth=may("admin"), response=Page[JudgeOut])
def list_judges(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the configured models, the oldest first."""
    rows = JudgeVersion.objects.filter(is_current=True).exclude(provider="offline")
    return page_of(rows, after, limit, _show_judge)


def _show_judge(judge: JudgeVersion) -> dict[str, Any]:
    stores = judge.api_key_env.startswith(STORED)
    endings = StoredKey.objects.filter(name=judge.api_key_env).values_list("ending", flat=True) if stores else ()
    return {
        "number": judge.pk,
        **{name: getattr(judge, name) for name in JudgeOut.model_fields if name not in ("number", "stored_key")},
        "api_key_env": "" if stores else judge.api_key_env,
        "stored_key": next(iter(endings), None),
    }
