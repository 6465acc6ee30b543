"""Quality control: settings, attention checks and their outcomes, the qualification test, consent, exclusions."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.forms import model_to_dict
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view
from pydantic import AwareDatetime

from annotation.audit_log.recording import record
from annotation.models import Membership
from annotation.models.quality_control import Batch, ConsentText, JudgmentExclusion
from annotation.quality_control import attention_checks, consent, exclusion, gold_reasons, near_pairs, qualification
from annotation.quality_control.forms import QualityControlForm
from annotation.quality_control.people import batch_counts
from api.authentication import may, scope_of
from api.etags import require_match
from api.idempotency import once
from api.models import AccessToken
from api.problems import CleanText, Given, validate_form
from api.routes.model_jobs import JobEstimateOut, show_estimate
from api.routes.pages import Cursor, Limit, Page, find_row, page_of
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection

router = Router(tags=["quality control"])
MANAGE = AccessToken.TokenScope.MANAGE
# Years beyond are slips of the pen; at the ends of the calendar the conversion to a time zone overflows.
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
Share = Annotated[float, Field(ge=0, le=0.5)]
Size = Annotated[int, Field(ge=1, le=10_000)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31)]


class QualityControlIn(Given):
    """Changes of the settings of quality control; a field that is left out, or null, stays as it is."""

    checks: Share | None = Field(None, description="The share of attention checks in the work.")
    repeats: Share | None = Field(None, description="The share of pairs that come again.")
    batch: Annotated[int, Field(ge=5, le=1000)] | None = Field(None, description="Pairs of a batch.")
    qualification: bool | None = Field(None, description="Annotators pass a test first.")
    pass_mark: Annotated[int, Field(ge=0, le=100)] | None = Field(None, description="Percent.")


class QualityControlOut(Schema):
    """The settings of quality control, and the consent that annotators are asked for."""

    checks: float
    repeats: float
    batch: int
    qualification: bool
    pass_mark: int
    tests: list[int] = Field(description="Numbers of the qualification tests, the oldest first.")
    consent: str | None = Field(description="Null: nobody is asked.")
    consent_version: int


class ChecksIn(Given):
    """Number and form of attention checks that are made of gold pairs."""

    count: Size = 20
    seed: Seed = 0
    form: Literal["own", "dream"] = Field("own", description="dream: arguments about something else (DREAM, F.2).")


class CheckPoolOut(Schema):
    """Attention checks that there are, the answers to them, and gold pairs that could become some."""

    standing: int
    answered: int
    gold: int
    debated: int
    relevant: int
    ordinary: int = Field(description="Ordinary pairs that show what a check must look like.")
    batches: int = Field(description="Closed batches.")
    missed: int = Field(description="Of them, with a missed check: they were returned.")
    unchecked: int
    arguments: JobEstimateOut = Field(description="Of having models argue about gold that lacks it.")


class CheckCountOut(Schema):
    """Number of attention checks that an act was about."""

    count: int


class BatchOut(Schema):
    """A closed batch of somebody's work, and what its attention checks said."""

    number: int
    member: int
    username: str
    batch: int = Field(description="From 0.")
    size: int
    checks: int = Field(description="Answered.")
    missed: int
    outcome: Literal["accepted", "returned", "unchecked"]
    created_at: datetime


class QualificationTestIn(Given):
    """The size of a new qualification test, without its practice."""

    size: Size = 20
    seed: Seed = 0


class QualificationTestOut(Schema):
    """The number of a qualification test."""

    test: int


class ConsentIn(Given):
    """Text that annotators agree to before their next pair; null: nobody is asked any more."""

    text: Annotated[CleanText, Field(max_length=20_000)] | None


class ExclusionIn(Given):
    """Member whose judgments and texts are excluded from everything."""

    member: int = Field(ge=1, lt=1 << 63, description="Its number.")
    note: Annotated[CleanText, Field(max_length=1000)] = ""
    since: Annotated[AwareDatetime, Field(ge=EARLIEST, le=LATEST)] | None = Field(
        None, description="Only judgments from then on; null: all."
    )


class ExclusionOut(Schema):
    """Judgments and texts of a member that were excluded (manually, or with their batch), or reinstated."""

    number: int
    member: int
    username: str
    why: str = Field(description="person, batch or pairs.")
    note: str
    batch: int | None
    since: datetime | None
    judgments: int
    texts: int
    reinstates: int | None = Field(description="The exclusion that this act took back.")
    is_reinstated: bool
    made_by: str | None
    created_at: datetime


class NearPairsOut(Schema):
    """Groups of nearly equal pairs whose labels differ; `all` false: only the newest labels were compared."""

    compared: int
    all: bool
    at: datetime | None
    groups: list[dict[str, Any]]


class ComparedOut(Schema):
    """State of a comparison; `done` false: a worker compares the labels later."""

    done: bool


@router.get("/collections/{slug:name}/quality-control", auth=may("admin"), response=QualityControlOut)
def read_quality_control(request: HttpRequest, name: str) -> Any:
    """Read the settings of quality control."""
    return _show_settings(scope_of(request).collection)


@router.patch(
    "/collections/{slug:name}/quality-control",
    auth=may("admin", MANAGE),
    response=QualityControlOut,
)
def change_quality_control(request: HttpRequest, name: str, body: QualityControlIn) -> Any:
    """Change the settings of quality control."""
    scope = scope_of(request)
    given = {key: value for key, value in body.dict(exclude_unset=True).items() if value is not None}
    with transaction.atomic():
        row = hold(Collection.objects, scope.collection.pk)
        require_match(request, QualityControlOut, _show_settings(row))
        if given:
            fields = QualityControlForm.Meta.fields
            # The form checks all its fields together, so those that were not given come from the row.
            form = QualityControlForm(model_to_dict(row, fields=fields) | given, instance=row)
            validate_form(form)
            form.save()
            record(scope, "settings.changed", keys=sorted(form.changed_data))
        return _show_settings(row)


def _show_settings(row: Collection) -> dict[str, Any]:
    held = ConsentText.current(row) if row.consent_version else None
    return {
        **model_to_dict(row, fields=QualityControlForm.Meta.fields),
        "tests": qualification.list_tests(row),
        "consent": held.text if held else None,
        "consent_version": row.consent_version,
    }


@router.get("/collections/{slug:name}/attention-checks", auth=may("admin"), response=CheckPoolOut)
def read_checks(request: HttpRequest, name: str) -> Any:
    """Count the attention checks, the answers to them, and the gold that could become some."""
    collection = scope_of(request).collection
    # Read once: both the counts and the estimate need the features of all pairs.
    ordinary, gold = attention_checks.read_features(collection)
    closed = batch_counts(collection.pk)
    return {
        **attention_checks.count_pool(collection, ordinary, gold),
        "batches": closed["closed"],
        "missed": closed["missed"],
        "unchecked": closed["unchecked"],
        "arguments": show_estimate(gold_reasons.forecast_arguments(collection, ordinary, gold).estimate),
    }


@router.post("/collections/{slug:name}/attention-checks", auth=may("admin", MANAGE), response={201: CheckCountOut})
@decorate_view(once)
def make_checks(request: HttpRequest, name: str, body: ChecksIn) -> Any:
    """Make attention checks of gold pairs."""
    scope = scope_of(request)
    made = attention_checks.make_checks(
        collection=scope.collection, count=body.count, seed=body.seed, by=scope.user, form=body.form
    )
    return Status(201, {"count": made})


@router.post(
    "/collections/{slug:name}/attention-checks/withdraw",
    auth=may("admin", MANAGE),
    response=CheckCountOut,
)
@decorate_view(once)
def withdraw_checks(request: HttpRequest, name: str) -> Any:
    """Withdraw all attention checks; what was answered stays."""
    scope = scope_of(request)
    return {"count": attention_checks.withdraw_checks(collection=scope.collection, by=scope.user)}


@router.post(
    "/collections/{slug:name}/attention-checks/arguments",
    auth=may("admin", MANAGE),
    response=CheckCountOut,
)
@decorate_view(once)
def write_arguments(request: HttpRequest, name: str) -> Any:
    """Have the configured models argue about gold pairs that have only the offline judges' words; a worker does it."""
    scope = scope_of(request)
    ordinary, gold = attention_checks.read_features(scope.collection)
    # Counted first: the worker may begin at once, and then fewer are left.
    left = gold_reasons.forecast_arguments(scope.collection, ordinary, gold).offline
    with transaction.atomic():
        if not gold_reasons.write_later(scope.collection, by=scope.user):
            raise BadInput(_("No model is configured to write debates, or they are already being written."))
    return {"count": left}


@router.get("/collections/{slug:name}/batches", auth=may("admin"), response=Page[BatchOut])
def list_batches(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the closed batches of everybody's work with what their attention checks said."""
    rows = Batch.objects.filter(membership__collection=scope_of(request).collection)
    return page_of(rows.select_related("membership__user"), after, limit, _show_batch)


@router.post(
    "/collections/{slug:name}/qualification-tests",
    auth=may("admin", MANAGE),
    response={201: QualificationTestOut},
)
@decorate_view(once)
def make_test(request: HttpRequest, name: str, body: QualificationTestIn) -> Any:
    """Make a qualification test, which annotators who have not passed one take before they get pairs."""
    scope = scope_of(request)
    made = qualification.make_test(collection=scope.collection, size=body.size, seed=body.seed, by=scope.user)
    return Status(201, {"test": made})


@router.post("/collections/{slug:name}/consent", auth=may("admin", MANAGE), response=QualityControlOut)
@decorate_view(once)
def write_consent(request: HttpRequest, name: str, body: ConsentIn) -> Any:
    """Write a version of what annotators agree to, or ask nobody any more."""
    scope = scope_of(request)
    if body.text is None:
        consent.disable_consent(collection=scope.collection, by=scope.user)
    else:
        consent.write(collection=scope.collection, text=body.text, by=scope.user)
    scope.collection.refresh_from_db()
    return _show_settings(scope.collection)


@router.get("/collections/{slug:name}/exclusions", auth=may("admin"), response=Page[ExclusionOut])
def list_exclusions(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List what was excluded and what was reinstated, the oldest first."""
    return page_of(_exclusions(request), after, limit, _show_exclusion)


@router.post("/collections/{slug:name}/exclusions", auth=may("admin", MANAGE), response={201: ExclusionOut})
@decorate_view(once)
def exclude_judgments(request: HttpRequest, name: str, body: ExclusionIn) -> Any:
    """Exclude a member's judgments and texts from everything; their pairs go to other people."""
    scope = scope_of(request)
    members = Membership.objects.filter(collection=scope.collection).select_related("user", "collection", "assessor")
    row = find_row(members, body.member, _("Member not found."))
    act = exclusion.exclude_judgments(membership=row, by=scope.user, note=body.note, since=body.since)
    return Status(201, _show_exclusion(_exclusions(request).get(pk=act.pk)))


@router.get("/collections/{slug:name}/exclusions/{number}", auth=may("admin"), response=ExclusionOut)
def read_exclusion(request: HttpRequest, name: str, number: int) -> Any:
    """Read an exclusion, or a reinstatement."""
    return _show_exclusion(find_row(_exclusions(request), number, _("Exclusion not found.")))


@router.post(
    "/collections/{slug:name}/exclusions/{number}/reinstate",
    auth=may("admin", MANAGE),
    response={201: ExclusionOut},
)
@decorate_view(once)
def reinstate_judgments(request: HttpRequest, name: str, number: int) -> Any:
    """Reinstate what an exclusion took out, as it was."""
    found = find_row(_exclusions(request), number, _("Exclusion not found."))
    back = exclusion.reinstate_judgments(act=found, by=scope_of(request).user)
    return Status(201, _show_exclusion(_exclusions(request).get(pk=back.pk)))


@router.get("/collections/{slug:name}/near-duplicates", auth=may("admin"), response=NearPairsOut)
def read_near_duplicates(request: HttpRequest, name: str) -> Any:
    """Read groups of nearly equal pairs whose labels differ; of many labels, as a worker compared them last."""
    found = near_pairs.near_pairs(scope_of(request).collection)
    return {name: found.get(name) for name in ("compared", "all", "at", "groups")}


@router.post("/collections/{slug:name}/near-duplicates", auth=may("admin", MANAGE), response=ComparedOut)
@decorate_view(once)
def compare_near_duplicates(request: HttpRequest, name: str) -> Any:
    """Compare the labels of nearly equal pairs anew; only large collections need it."""
    scope = scope_of(request)
    with transaction.atomic():
        done = near_pairs.refresh_groups(scope.collection)
        record(scope, "statistics.asked")
    return {"done": done}


def _exclusions(request: HttpRequest) -> Any:
    rows = JudgmentExclusion.objects.filter(membership__collection=scope_of(request).collection)
    return rows.select_related("membership__user", "made_by", "reversed_by")


def _show_exclusion(row: JudgmentExclusion) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("why", "note", "batch", "since", "created_at")}
    member = {"member": row.membership_id, "username": row.membership.user.username}
    return {
        "number": row.pk,
        **member,
        **shown,
        "judgments": len(row.judgments),
        "texts": len(row.texts),
        "reinstates": row.reverses_id,
        # The other side of a one-to-one relation is an attribute only where there is such a row.
        "is_reinstated": hasattr(row, "reversed_by"),
        "made_by": row.made_by.username if row.made_by else None,
    }


def _show_batch(row: Batch) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("size", "checks", "missed", "outcome", "created_at")}
    member = {"member": row.membership_id, "username": row.membership.user.username}
    return {"number": row.pk, **member, "batch": row.number, **shown}
