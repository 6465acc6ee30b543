"""Quality of labels: whether they can go out, and label audits, which measure their accuracy."""

from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.access.audit_log.recording import record
from annotation.agreement.api import MeasuredOut
from annotation.agreement.measures import Statistic
from annotation.quality.label_quality import services, statistics
from annotation.quality.label_quality.audits import measure_audits
from annotation.quality.label_quality.loading import find_campaign, load_label_quality
from annotation.quality.label_quality.records import RouteQuality
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.operations import operation
from api.paging import Cursor, Limit, Page, page_of
from corpus.numbered import numbered_or_404
from judges.campaigns import audit_sampling, counters
from judges.models import Campaign

router = Router(tags=["quality"])


class AuditOut(Schema):
    """A campaign with pairs that were drawn for people to check."""

    campaign: int
    policy: str
    state: str
    drawn: int
    resolved: int


class RouteOut(Schema):
    """Accuracy of a campaign's labels by one route. `most`: pairs that can be drawn."""

    key: str
    description: str
    label: int
    labelled: int
    drawn: int
    resolved: int
    right: int
    accuracy: Statistic
    verdict: str = Field(description="enough: surely within the limit; over: surely beyond it; open.")
    stopped: bool = Field(description="Further pairs of this route go to people.")
    enough: int = Field(description="Drawn pairs that give an interval of 5 points to each side, or `most`.")
    most: int


class AuditDetailsOut(AuditOut):
    """The audit of a campaign; without routes while it has labelled nothing."""

    can_draw: bool = Field(description="The campaign has ended, so that every label has the same chance.")
    accuracy: Statistic | None
    covered: float | None = Field(description="Share of the labels whose route has a resolved audit.")
    limit: float | None = Field(description="The share of wrong labels above which a route is stopped.")
    conflicts: int
    routes: list[RouteOut]


class AuditedPairsOut(Schema):
    """Number of pairs that wait for people now and did not before."""

    pairs: int


class ReasonOut(Schema):
    """Reason why labels should not go out: pairs (`count`), routes; `value`: share or alpha."""

    key: str
    count: int
    routes: int
    value: float


class QualityOut(Schema):
    """Quality of labels: whether they can go out, and why not; `failure`: not measured."""

    can_go_out: bool
    reasons: list[ReasonOut]
    failure: str
    status: dict[str, Any]


@router.get("/collections/{slug:name}/audits", auth=may("admin"), response=Page[AuditOut])
def list_audits(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the campaigns that have audited pairs."""
    return page_of(_audited(request).filter(drawn__gt=0), after, limit, _show_campaign)


@router.get("/collections/{slug:name}/audits/{number}", auth=may("admin"), response=AuditDetailsOut)
def read_audit(request: HttpRequest, name: str, number: int) -> Any:
    """Read the audit of a campaign: accuracy over all and by route."""
    collection = scope_of(request).collection
    campaign = numbered_or_404(_audited(request), collection, number, _("Campaign not found."))
    ended = campaign.state in audit_sampling.ENDED
    # While a campaign runs its strata still grow: how many can be drawn is known at its end.
    left = audit_sampling.remaining_by_stratum(campaign.pk) if ended else None
    found = measure_audits(collection, campaign, counters.read(campaign.pk), left)
    measured: dict[str, Any] = {"accuracy": None, "covered": None, "limit": None, "conflicts": 0, "routes": []}
    if found is not None:
        measured = {
            "accuracy": _show_share(found.overall),
            "covered": found.covered,
            "limit": found.limit,
            "conflicts": found.conflicts,
            "routes": [_show_route(one) for one in found.routes],
        }
    return {**_show_campaign(campaign), "can_draw": ended, **measured}


operation(
    router,
    services.draw_audits,
    "POST",
    "/audits/{number}/draw",
    response=AuditedPairsOut,
    find=find_campaign,
    status=200,
)


@router.get("/collections/{slug:name}/quality", auth=may("admin"), response=QualityOut)
def read_quality(request: HttpRequest, name: str) -> Any:
    """Say whether the labels can go out, and what is in the way."""
    collection = scope_of(request).collection
    found = load_label_quality(collection)
    can_go_out = not found.failure and not found.reasons
    return {"can_go_out": can_go_out, "reasons": found.reasons, "failure": found.failure, "status": found.status}


@router.post("/collections/{slug:name}/quality", auth=may("admin", MANAGE), response=MeasuredOut)
@decorate_view(once)
def measure_quality(request: HttpRequest, name: str) -> Any:
    """Compute the stored statistics of a large collection anew: by a worker where one lives."""
    scope = scope_of(request)
    with transaction.atomic():
        done = statistics.STATISTICS.refresh(scope.collection) is not None
        record(scope, "statistics.asked")
    return {"done": done}


def _audited(request: HttpRequest) -> Any:
    rows = Campaign.judging.filter(collection=scope_of(request).collection).select_related("collection")
    resolved = Count("audits", filter=Q(audits__item__state="settled"))
    return rows.annotate(drawn=Count("audits"), resolved=resolved)


def _show_campaign(row: Any) -> dict[str, Any]:
    shown = ("policy", "state", "drawn", "resolved")
    return {"campaign": row.number, **{name: getattr(row, name) for name in shown}}


def _show_route(one: RouteQuality) -> dict[str, Any]:
    shown = ("key", "label", "drawn", "right", "verdict", "stopped", "enough", "most")
    counts = {"description": one.words, "labelled": one.population, "resolved": one.settled}
    return {**{name: getattr(one, name) for name in shown}, **counts, "accuracy": _show_share(one.accuracy)}


def _show_share(one: Statistic) -> Statistic:
    # The pure module of measures marks its reasons for translation; here they are translated.
    return replace(one, reason=_(one.reason)) if one.reason else one
