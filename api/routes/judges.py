"""Judges: the models, their prices, the panel of a collection, self-checks, canaries, and (owners) the judges file."""

from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from annotation.costs.forms_prices import PriceForm
from annotation.costs.prices import judge_price
from annotation.judge_setup.forms import MembersForm
from annotation.judge_setup.loading import FILE, LONGEST, load_judges_text
from annotation.judge_setup.page import build_page
from annotation.panels import self_checks
from annotation.panels.applying import base_panel, make_panel, newest_file_panel
from annotation.permissions import require_owner
from api.authentication import may, scope_of
from api.etags import require_match
from api.idempotency import once
from api.models import AccessToken
from api.problems import CleanText, Given, validate_form
from api.routes.model_jobs import JobEstimateOut, show_estimate
from api.routes.pages import Cursor, Limit, Page, find_row, page_of
from api.withheld import GuardedSchema
from corpus.errors import BadInput
from corpus.holding import hold
from jobs import notifications
from judges.costs.price_entries import HIGHEST, PRICES
from judges.costs.price_rows import enter_price
from judges.costs.prices import PAID_BY_CALL
from judges.engine.plan import judge_of, records_of
from judges.models import JudgeVersion, Panel
from judges.models.canaries import CanarySchedule
from judges.models.prices import PriceRow
from judges.panels.file_text import write_judges_text
from judges.probes import canaries
from judges.probes.self_check import forecast

router = Router(tags=["judges"])
MANAGE = AccessToken.TokenScope.MANAGE
Names = Annotated[list[CleanText], Field(min_length=1, max_length=100)]
Price = Annotated[float, Field(ge=0, le=HIGHEST, description="USD for a million tokens.")]


class JudgeOut(Schema):
    """A configured model, and its place on the panel of the collection."""

    name: str
    provider: str
    model: str
    has_key: bool
    needs_key: bool
    debates: bool
    votes: bool
    works: bool | None = Field(description="What its newest test said; null: it was never tested.")
    problem: str


class PanelOut(Schema):
    """The panel of a collection: who debates, who votes."""

    name: str
    debate: list[str]
    judges: list[str]
    majority: int


class PanelIn(Given):
    """Models that debate and models that vote in new campaigns."""

    judges: Names = Field(description="1, 3, 5, 7 or 9.")
    debate: list[str] | None = Field(
        None, max_length=2, description="For, against; none: nobody debates; null: the debaters of the present panel."
    )
    default: bool = Field(False, description="For all new campaigns of the site, too; owners alone.")


class SelfCheckIn(Given):
    """Judges whose self-check runs."""

    judges: Names


class SelfCheckStartedOut(Schema):
    """Judges that a worker will ask."""

    judges: list[str]


class SelfCheckOut(Schema):
    """The newest self-check of a judge in this collection; `passes` null: there was none."""

    judge: str
    passes: bool | None
    findings: dict[str, Any]


class JudgesFileIn(Given):
    """The judges file, which is loaded whole or not at all."""

    text: str = Field(max_length=LONGEST)


class JudgesFileOut(GuardedSchema):
    """The judges file in use; after it was loaded, with the names of judges that are new or changed.

    extra_headers, extra_body and token_command are masked for a token without the scope `manage`.
    """

    text: str
    changed: list[str]


class PriceOut(Schema):
    """The price of a judge that holds, in USD for a million tokens; null: it is not known."""

    number: int
    judge: str
    model: str
    source: str
    can_change: bool
    input_price: float | None
    output_price: float | None
    cached_input_price: float | None
    written_input_price: float | None
    reasoning_price: float | None
    batch_input_price: float | None
    batch_output_price: float | None
    batch_cached_input_price: float | None


class PriceIn(Given):
    """The price of a judge; what is left out or null costs as docs/costs.md says. All null: the price is taken away."""

    input_price: Price | None = None
    output_price: Price | None = None
    cached_input_price: Price | None = None
    written_input_price: Price | None = None
    reasoning_price: Price | None = None
    batch_input_price: Price | None = None
    batch_output_price: Price | None = None
    batch_cached_input_price: Price | None = None
    note: Annotated[CleanText, Field(max_length=200)] = Field("", description="Where the price is from.")


class CanariesOut(Schema):
    """Schedule of the tests whether judges follow hostile text, of the whole site. 0 hours: never."""

    hours: int
    paid: bool = Field(description="All judges are asked; false: the free ones.")
    asked: bool = Field(False, description="A worker asks them now.")


class CanariesIn(Given):
    """Changes of the schedule of canaries."""

    hours: int | None = Field(None, ge=0, le=24 * 366)
    paid: bool | None = None


class CanariesAskIn(Given):
    """Judges to test with canaries now."""

    paid: bool = Field(False, description="All judges; false: the free ones.")


@router.get("/collections/{slug:name}/judges", auth=may("admin"), response=list[JudgeOut])
def list_judges(request: HttpRequest, name: str) -> Any:
    """List the configured models by name, with their keys, newest tests and places on the panel."""
    return [_show_judge(one) for one in build_page(scope_of(request).collection)["models"]]


def _show_judge(one: dict[str, Any]) -> dict[str, Any]:
    row, probe = one["judge"], one["probe"]
    plain = {key: one[key] for key in ("has_key", "needs_key", "debates", "votes")}
    tested = {"works": None if probe is None else not probe.problem, "problem": probe.problem if probe else ""}
    return {"name": row.name, "provider": row.provider, "model": row.model, **plain, **tested}


@router.get("/collections/{slug:name}/panel", auth=may("admin"), response=PanelOut)
def read_panel(request: HttpRequest, name: str) -> Any:
    """Read the panel that new campaigns of the collection use."""
    return _show_panel(base_panel(scope_of(request).collection))


@router.post("/collections/{slug:name}/panel", auth=may("admin", MANAGE), response=PanelOut)
@decorate_view(once)
def use_panel(request: HttpRequest, name: str, body: PanelIn) -> Any:
    """Make these judges and debaters the panel of the collection."""
    scope = scope_of(request)
    if body.default:
        require_owner(scope.user)
    if body.debate is not None:
        # One name alone fills the first side, and the form says that the other is missing.
        sides = dict(zip(("debate_for", "debate_against"), body.debate, strict=False))
        data: Any = {**sides, "judge": body.judges}
        names = {"judge": "judges", "debate_for": "debate", "debate_against": "debate"}
        validate_form(MembersForm(data, panel=base_panel(scope.collection)), names)
    with transaction.atomic():
        made = make_panel(collection=scope.collection, judges=body.judges, debate=body.debate, default=body.default)
        record(scope, "panel.used", panel=made.name, judges=list(made.ensemble), default=body.default)
    return _show_panel(made)


def _show_panel(row: Panel) -> dict[str, Any]:
    return {"name": row.name, "debate": row.debate, "judges": row.ensemble, "majority": row.majority}


@router.post("/collections/{slug:name}/self-checks/estimate", auth=may("admin"), response=JobEstimateOut)
def estimate_self_check(request: HttpRequest, name: str, body: SelfCheckIn) -> Any:
    """Estimate the calls and cost of a self-check; nothing starts."""
    asked = self_checks.collection_probes(scope_of(request).collection)
    judges = records_of(self_checks.current_versions(body.judges))
    return show_estimate(forecast(judges, asked, self_checks.REPEATS))


@router.get("/collections/{slug:name}/self-checks", auth=may("admin"), response=list[SelfCheckOut])
def list_self_checks(request: HttpRequest, name: str) -> Any:
    """List the newest self-check of each judge of the panel."""
    collection = scope_of(request).collection
    panel = base_panel(collection)
    found = self_checks.newest_self_checks(collection, dict.fromkeys([*panel.ensemble, *panel.debate]))
    rows = ((key, one.row) for key, one in found.items())
    return [
        {"judge": key, "passes": row.passes if row else None, "findings": row.findings if row else {}}
        for key, row in rows
    ]


@router.post("/collections/{slug:name}/self-checks", auth=may("admin", MANAGE), response=SelfCheckStartedOut)
@decorate_view(once)
def run_self_check(request: HttpRequest, name: str, body: SelfCheckIn) -> Any:
    """Run the self-check of judges, which asks them about pairs whose label is known; a worker does it."""
    scope = scope_of(request)
    judges = self_checks.current_versions(body.judges)
    with transaction.atomic():
        self_checks.ask_later(scope.collection, judges)
        record(scope, "judge.self-check", judges=[row.name for row in judges])
    return {"judges": [row.name for row in judges]}


@router.get("/collections/{slug:name}/judges/file", auth=may("own"), response=JudgesFileOut)
def read_judges_file(request: HttpRequest, name: str) -> Any:
    """Read the judges file in use, as an owner of the site: names of keys stand in it, never a key."""
    # Written from what is loaded: a file on the disk may have been changed since.
    return {"text": write_judges_text(newest_file_panel()), "changed": []}


@router.post("/collections/{slug:name}/judges/file", auth=may("own", MANAGE), response=JudgesFileOut)
@decorate_view(once)
def load_judges_file(request: HttpRequest, name: str, body: JudgesFileIn) -> Any:
    """Load a judges file for the whole site, as an owner: whole, or not at all."""
    with transaction.atomic():
        file, changes = load_judges_text(body.text, FILE)
        changed = [one["name"] for one in changes["judges"] if one["change"] != "unchanged"]
        record(scope_of(request), "judges.configured", panel=file.panel.name, judges=changed)
    return {"text": write_judges_text(newest_file_panel()), "changed": changed}


@router.get("/collections/{slug:name}/prices", auth=may("admin"), response=Page[PriceOut])
def list_prices(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the price that holds for each judge."""
    return page_of(JudgeVersion.objects.filter(is_current=True), after, limit, _show_price)


@router.get("/collections/{slug:name}/prices/{number}", auth=may("admin"), response=PriceOut)
def read_price(request: HttpRequest, name: str, number: int) -> Any:
    """Read the price of a judge."""
    return _show_price(_find_judge(number))


@router.patch("/collections/{slug:name}/prices/{number}", auth=may("admin", MANAGE), response=PriceOut)
def change_price(request: HttpRequest, name: str, number: int, body: PriceIn) -> Any:
    """Enter the price of a judge's model for new calls, or take it away; nothing given changes nothing."""
    scope = scope_of(request)
    with transaction.atomic():
        row = _find_judge(number)
        hold(JudgeVersion.objects, row.pk, no_key=True)
        require_match(request, PriceOut, _show_price(row))
        # An empty request is no wish to take the price away: that is said by nulls.
        if not body.model_fields_set - {"note"}:
            return _show_price(row)
        if not _can_change(row):
            raise BadInput(_("The price of this judge is fixed."))
        given = {key: value for key, value in body.dict().items() if value is not None and key in PRICES}
        wanted = _check_prices(body) if given else {}
        judge = judge_of(row)
        where = {"provider": judge.provider, "base_url": judge.base_url, "model": judge.model}
        enter_price(**where, prices=wanted, source=PriceRow.Source.PAGE, note=body.note)
        said = [f"{key} {value:g}" for key, value in wanted.items()]
        record(scope, "price.changed", provider=judge.provider, model=judge.model, prices=said)
    return _show_price(row)


def _check_prices(body: PriceIn) -> dict[str, float]:
    """Return the prices as the page's form takes them. Raises ValidationError, which names wrong fields."""
    form = PriceForm(body.dict())
    validate_form(form)
    return form.prices


def _find_judge(number: int) -> JudgeVersion:
    return find_row(JudgeVersion.objects.filter(is_current=True), number, _("Judge not found."))


def _can_change(row: JudgeVersion) -> bool:
    return row.provider != "offline" and row.provider not in PAID_BY_CALL


def _show_price(row: JudgeVersion) -> dict[str, Any]:
    judge = judge_of(row)
    known = judge_price(judge)["known"]
    told = {key: getattr(judge, key) for key in PRICES}
    if known is not None and told["input_price"] is None:
        # The judges file says no price, but one is known: entered for the site, or published with the model.
        told |= {"input_price": known.input, "output_price": known.output}
    facts = {"judge": row.name, "model": row.model, "source": str(judge_price(judge)["source"])}
    return {"number": row.pk, **facts, "can_change": _can_change(row), **told}


@router.get("/collections/{slug:name}/canaries", auth=may("admin"), response=CanariesOut)
def read_canaries(request: HttpRequest, name: str) -> Any:
    """Read how often workers test whether judges follow hostile text."""
    return _show_canaries()


@router.patch("/collections/{slug:name}/canaries", auth=may("admin", MANAGE), response=CanariesOut)
def schedule_canaries(request: HttpRequest, name: str, body: CanariesIn) -> Any:
    """Set how often workers test the judges of the default panel; it holds for the whole site."""
    given = {key: value for key, value in body.dict(exclude_unset=True).items() if value is not None}
    with transaction.atomic():
        held = _show_canaries()
        require_match(request, CanariesOut, held)
        if given:
            wanted = {"hours": held["hours"], "paid": held["paid"], **given}
            canaries.set_schedule(**wanted)
            record(scope_of(request), "canaries.schedule", **wanted)
        return _show_canaries()


@router.post("/collections/{slug:name}/canaries", auth=may("admin", MANAGE), response=CanariesOut)
@decorate_view(once)
def ask_canaries(request: HttpRequest, name: str, body: CanariesAskIn) -> Any:
    """Test the judges of the default panel now; a worker asks them."""
    # The request would be accepted, and nobody would ever ask.
    if notifications.is_away():
        raise BadInput(_("Redis is not responding, so no worker can run this. Try again when it is back."))
    record(scope_of(request), "canaries.asked", paid=body.paid)
    transaction.on_commit(lambda: notifications.notify(canaries.TASK, True, body.paid))
    return {**_show_canaries(), "asked": True}


def _show_canaries() -> dict[str, Any]:
    row = CanarySchedule.objects.first()
    return {"hours": row.hours if row else 0, "paid": row.paid if row else False, "asked": False}
