"""Acts on many pairs at once: planned, carried out, undone; and pairs that everybody skipped."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.bulk import acts
from annotation.bulk.exporting import CONTENT_TYPES, write_lines
from annotation.bulk.kinds import KINDS
from annotation.models.pair_table import BulkAct
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.paging import Cursor, Limit, Page, page_of
from api.problems import CleanText, Given
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404

router = Router(tags=["collections"])
State = BulkAct.State
LINES: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The file.",
            "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in CONTENT_TYPES.values()},
        }
    }
}


class PairActIn(Given):
    """An act on pairs, which is carried out once it is run."""

    kind: Literal["send", "reassign", "priority", "exclude", "reinstate", "export"]
    pairs: list[Annotated[int, Field(ge=1, lt=1 << 63)]] = Field(
        min_length=1, max_length=acts.MOST, description="Their numbers; those of other collections are left out."
    )


class PairActRunIn(Given):
    """Option with which an act is carried out, where it has some."""

    option: Annotated[CleanText, Field(max_length=20)] = ""


class PairActOut(Schema):
    """An act on pairs. `count`: pairs that it changes at most, or that it changed."""

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


@router.get("/collections/{slug:name}/pair-acts", auth=may("admin"), response=Page[PairActOut])
def list_pair_acts(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the acts on pairs that were carried out, the oldest first."""
    return page_of(_acts(request).exclude(state=State.PLANNED), after, limit, _show_act)


@router.post("/collections/{slug:name}/pair-acts", auth=may("admin", MANAGE), response={201: PairActOut})
@decorate_view(once)
def plan_pair_act(request: HttpRequest, name: str, body: PairActIn) -> Any:
    """Plan an act on pairs: the answer says how many it would change and what can be chosen; run carries it out."""
    scope = scope_of(request)
    pairs = acts.select_pairs(scope.collection, body.pairs)
    made = acts.plan_act(collection=scope.collection, kind=body.kind, pairs=pairs, by=scope.user)
    return Status(201, _show_act(_find_act(request, made.number)))


@router.get("/collections/{slug:name}/pair-acts/{number}", auth=may("admin"), response=PairActOut)
def read_pair_act(request: HttpRequest, name: str, number: int) -> Any:
    """Read what an act on pairs will do, or did."""
    return _show_act(_find_act(request, number))


@router.post("/collections/{slug:name}/pair-acts/{number}/run", auth=may("admin", MANAGE), response=PairActOut)
@decorate_view(once)
def run_pair_act(request: HttpRequest, name: str, number: int, body: PairActRunIn) -> Any:
    """Carry out a planned act; the file of an export is downloaded afterwards."""
    acts.run_act(_find_act(request, number), option=body.option, by=scope_of(request).user)
    return _show_act(_find_act(request, number))


@router.post(
    "/collections/{slug:name}/pair-acts/{number}/undo",
    auth=may("admin", MANAGE),
    response=PairActOut,
)
@decorate_view(once)
def undo_pair_act(request: HttpRequest, name: str, number: int) -> Any:
    """Undo an act on pairs where nobody changed them since."""
    acts.undo_act(_find_act(request, number), by=scope_of(request).user)
    return _show_act(_find_act(request, number))


@router.get("/collections/{slug:name}/pair-acts/{number}/file", auth=may("admin"), openapi_extra=LINES)
def read_pair_act_file(request: HttpRequest, name: str, number: int) -> Any:
    """Download the pairs of an export that was carried out."""
    scope, found = scope_of(request), _find_act(request, number)
    if found.kind != BulkAct.Kind.EXPORT or found.state != State.DONE:
        raise BadInput(_("Only an export that was carried out has a file."))
    lines = write_lines(scope.collection, found.pairs, found.option)
    headers = {"Content-Disposition": f'attachment; filename="{name}-pairs-{found.number}.{found.option}"'}
    return StreamingHttpResponse(lines, content_type=CONTENT_TYPES[found.option], headers=headers)


def _acts(request: HttpRequest) -> Any:
    rows = BulkAct.objects.select_related("collection", "made_by")
    return rows.filter(collection=scope_of(request).collection)


def _find_act(request: HttpRequest, number: int) -> BulkAct:
    """Return an act; a plan is its author's alone, for it holds what they selected. Raises Http404."""
    rows, collection = _acts(request), scope_of(request).collection
    found: BulkAct = numbered_or_404(rows, collection, number, _("Act on pairs not found."))
    if found.state == State.PLANNED and found.made_by_id != scope_of(request).user.pk:
        raise Http404(_("Act on pairs not found."))
    return found


def _show_act(row: BulkAct) -> dict[str, Any]:
    kind = KINDS[BulkAct.Kind(row.kind)]
    planned = row.state == State.PLANNED
    shown = ("kind", "state", "option", "created_at", "done_at", "undone_at")
    options = kind.options_of(row) if planned else {}
    return {
        "number": row.number,
        **{name: getattr(row, name) for name in shown},
        "pairs": row.size,
        "count": kind.count(row.collection, row.pairs) if planned else row.affected,
        "options": {str(key): str(words) for key, words in options.items()},
        "can_undo": kind.can_undo(row),
        "made_by": row.made_by.username,
    }
