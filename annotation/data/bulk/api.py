"""REST API of acts on many pairs at once: plan, carry out, undo."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from actions.services import Actor
from annotation.data.bulk import selectors, services
from annotation.data.bulk.exporting import CONTENT_TYPES
from annotation.data.bulk.options import ActOptions
from annotation.models.pair_table import BulkAct
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.operations import COLLECTION_PATH
from api.paging import Cursor, Limit, Page, page_of
from api.problems import RequestBody
from corpus.errors import BadInput

router = Router(tags=["collections"])
State = BulkAct.State
PATH = f"{COLLECTION_PATH}/pair-acts"
LINES: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The file.",
            "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in CONTENT_TYPES.values()},
        }
    }
}


class PairActIn(RequestBody):
    """An act on pairs, which is carried out once it is run."""

    kind: Literal["send", "reassign", "priority", "exclude", "reinstate", "label", "export"]
    pairs: list[Annotated[int, Field(ge=1, lt=1 << 63)]] = Field(
        min_length=1, max_length=services.MOST, description="Their numbers; those of other collections are left out."
    )


class PairActOut(Schema):
    """An act on pairs. `count`: how many pairs it changes at most, or has changed."""

    number: int
    kind: str
    state: str = Field(description="planned, done or undone.")
    pairs: int
    count: int
    option: str
    options: dict[str, str] = Field(description="What can be chosen, while it is planned: the option and its words.")
    can_undo: bool
    made_by: str
    created_at: datetime
    done_at: datetime | None
    undone_at: datetime | None


@router.get(PATH, auth=may("admin"), response=Page[PairActOut])
def list_pair_acts(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the acts on pairs that were carried out, the oldest first."""
    acts = selectors.acts_of(scope_of(request).collection).exclude(state=State.PLANNED)
    return page_of(acts, after, limit, _show_act)


@router.post(PATH, auth=may("admin", MANAGE), response={201: PairActOut})
@decorate_view(once)
def plan_pair_act(request: HttpRequest, name: str, body: PairActIn) -> Any:
    """Plan an act on pairs; the response has its options and how many pairs it would change. `run` carries it out."""
    scope = scope_of(request)
    pairs = services.select_pairs(scope.collection, body.pairs)
    act = services.plan_act(collection=scope.collection, kind=body.kind, pairs=pairs, by=scope.user)
    return Status(201, _show_act(_find_act(request, act.number)))


@router.get(f"{PATH}/{{number}}", auth=may("admin"), response=PairActOut)
def read_pair_act(request: HttpRequest, name: str, number: int) -> Any:
    """Read what an act on pairs will change, or has changed."""
    return _show_act(_find_act(request, number))


@router.post(f"{PATH}/{{number}}/run", auth=may("admin", MANAGE), response=PairActOut)
@decorate_view(once)
def run_pair_act(request: HttpRequest, name: str, number: int, body: ActOptions) -> Any:
    """Carry out a planned act; the file of an export is downloaded afterwards."""
    services.run_act(Actor.of(scope_of(request)), _find_act(request, number), body)
    return _show_act(_find_act(request, number))


@router.post(f"{PATH}/{{number}}/undo", auth=may("admin", MANAGE), response=PairActOut)
@decorate_view(once)
def undo_pair_act(request: HttpRequest, name: str, number: int) -> Any:
    """Undo an act on the pairs that no one has changed since."""
    services.undo_act(Actor.of(scope_of(request)), _find_act(request, number))
    return _show_act(_find_act(request, number))


@router.get(f"{PATH}/{{number}}/file", auth=may("admin"), openapi_extra=LINES)
def read_pair_act_file(request: HttpRequest, name: str, number: int) -> Any:
    """Download the pairs of an export that was carried out."""
    act = _find_act(request, number)
    if act.kind != BulkAct.Kind.EXPORT or act.state != State.DONE:
        raise BadInput(_("Only an export that was carried out has a file."))
    return selectors.stream_file(act)


def _find_act(request: HttpRequest, number: int) -> BulkAct:
    scope = scope_of(request)
    return selectors.find_act(scope.collection, number, scope.user)


def _show_act(row: BulkAct) -> dict[str, Any]:
    details = selectors.describe_act(row)
    return {
        **{name: getattr(row, name) for name in PairActOut.model_fields if name not in details},
        **details,
        "pairs": row.size,
        "options": {str(key): str(words) for key, words in details["options"].items()},
        "made_by": row.made_by.username,
    }
