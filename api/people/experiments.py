"""Debate effect: what the arms of the experiment showed, and paired studies."""

from datetime import date, datetime
from typing import Annotated, Any

from django.db.models import Count
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.experiments import report
from annotation.experiments.forms import StudyForm
from annotation.experiments.studies import MOST, end_study, make_study
from annotation.models import Study
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.people.quality_control import Seed
from api.problems import Given, validate_form
from api.routes.pages import Cursor, Limit, Page, page_of
from corpus.numbered import numbered_or_404

router = Router(tags=["experiments"])
MANAGE = AccessToken.TokenScope.MANAGE
Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2200, 1, 1))]


class DebateEffectOut(Schema):
    """Votes with and without the debate, and every paired study: docs/debate-effect.md."""

    document: dict[str, Any]


class PairedStudyIn(Given):
    """A paired study: who takes part, in two groups by lot, over how many pairs."""

    people: list[int] = Field(min_length=1, max_length=1_000, description="Numbers of members.")
    pairs: int = Field(50, ge=1, le=MOST)
    overlap: int = Field(3, ge=1, le=25, description="People of each group for a pair.")
    gold: bool = Field(True, description="Only pairs with a reference grade.")
    seed: Seed | None = Field(None, description="Null: that of the collection.")


class PairedStudyOut(Schema):
    """A paired study."""

    number: int
    seed: int
    overlap: int
    pairs: int
    created_at: datetime
    ended_at: datetime | None


@router.get("/collections/{slug:name}/debate-effect", auth=may("admin"), response=DebateEffectOut)
def read_debate_effect(request: HttpRequest, name: str, since: Day | None = None) -> Any:
    """Read whether showing the debate changes judgments, and saves time; `since`: only votes from that day on."""
    collection = scope_of(request).collection
    found = report.measure_debate_effect(collection, since)
    return {"document": report.build_json_document(found, report.list_studies(collection, most=1000))}


@router.get("/collections/{slug:name}/studies", auth=may("admin"), response=Page[PairedStudyOut])
def list_studies(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the paired studies, the oldest first."""
    return page_of(_studies(request), after, limit, _show_study)


@router.post("/collections/{slug:name}/studies", auth=may("admin", MANAGE), response={201: PairedStudyOut})
@decorate_view(once)
def start_study(request: HttpRequest, name: str, body: PairedStudyIn) -> Any:
    """Start a paired study: its pairs come first to those who take part."""
    scope = scope_of(request)
    # A form's choices are texts.
    form = StudyForm({**body.dict(), "people": [str(one) for one in body.people]}, collection=scope.collection)
    given = validate_form(form)
    made = make_study(
        by=scope,
        collection=scope.collection,
        people=[int(one) for one in given["people"]],
        pairs=given["pairs"],
        overlap=given["overlap"],
        gold=given["gold"],
        seed=scope.collection.seed if body.seed is None else body.seed,
    )
    return Status(201, _show_study(_studies(request).get(pk=made.pk)))


@router.get("/collections/{slug:name}/studies/{number}", auth=may("admin"), response=PairedStudyOut)
def read_study(request: HttpRequest, name: str, number: int) -> Any:
    """Read a paired study; its figures are with the debate effect."""
    return _show_study(_find_study(request, number))


@router.post(
    "/collections/{slug:name}/studies/{number}/end",
    auth=may("admin", MANAGE),
    response=PairedStudyOut,
)
@decorate_view(once)
def stop_study(request: HttpRequest, name: str, number: int) -> Any:
    """End a paired study: what is open of it is withdrawn, judgments stay."""
    scope, found = scope_of(request), _find_study(request, number)
    end_study(scope, found)
    found.refresh_from_db()
    return _show_study(found)


def _studies(request: HttpRequest) -> Any:
    # Counted by the statement that reads the list, and not by one more for each study.
    rows = Study.objects.select_related("collection").annotate(tasks=Count("items"))
    return rows.filter(collection=scope_of(request).collection)


def _find_study(request: HttpRequest, number: int) -> Any:
    return numbered_or_404(_studies(request), scope_of(request).collection, number, _("Study not found."))


def _show_study(row: Any) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("seed", "overlap", "created_at", "ended_at")}
    # Each pair has two tasks: one for the group that sees the debate, one for the other.
    return {"number": row.number, **shown, "pairs": row.tasks // 2}
