"""API of label quality: whether labels can be exported, and the label audits that measure their accuracy."""

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
from annotation.quality.label_quality.loading import find_campaign, load_readiness
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.operations import operation
from api.paging import Cursor, Limit, Page, page_of
from corpus.numbered import numbered_or_404
from judges.costs import counters
from judges.engine import audit_sampling
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
    """Accuracy of a campaign's labels by one route. `most`: pairs drawn or available for drawing."""

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
    """Number of pairs that were newly sent to people."""

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


@router.get("/collections/{slug:name}/audits", auth=may("results"), response=Page[AuditOut])
def list_audits(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the campaigns that have audited pairs."""
    return page_of(_audited(request).filter(drawn__gt=0), after, limit, _show_campaign)


@router.get("/collections/{slug:name}/audits/{number}", auth=may("results"), response=AuditDetailsOut)
def read_audit(request: HttpRequest, name: str, number: int) -> Any:
    """Read the audit of a campaign: accuracy over all and by route."""
    collection = scope_of(request).collection
    campaign = numbered_or_404(_audited(request), collection, number, _("Campaign not found."))
    ended = campaign.state in audit_sampling.ENDED
    # The strata of a running campaign still grow: how many pairs can be drawn is known at its end.
    left = audit_sampling.remaining_by_stratum(campaign.pk) if ended else None
    audits = measure_audits(collection, campaign, counters.read(campaign.pk), left)
    figures: dict[str, Any] = {"accuracy": None, "covered": None, "limit": None, "conflicts": 0, "routes": []}
    if audits is not None:
        same_names = ("key", "label", "drawn", "right", "verdict", "stopped", "enough", "most")
        figures = {
            "accuracy": _show_share(audits.overall),
            "covered": audits.covered,
            "limit": audits.limit,
            "conflicts": audits.conflicts,
            "routes": [
                {
                    **{name: getattr(route, name) for name in same_names},
                    "description": route.words,
                    "labelled": route.population,
                    "resolved": route.settled,
                    "accuracy": _show_share(route.accuracy),
                }
                for route in audits.routes
            ],
        }
    return {**_show_campaign(campaign), "can_draw": ended, **figures}


operation(
    router,
    services.draw_audits,
    "POST",
    "/audits/{number}/draw",
    response=AuditedPairsOut,
    find=find_campaign,
    status=200,
)


@router.get("/collections/{slug:name}/quality", auth=may("results"), response=QualityOut)
def read_quality(request: HttpRequest, name: str) -> Any:
    """Read whether the labels can be exported, and the reasons against it."""
    collection = scope_of(request).collection
    quality = load_readiness(collection)
    can_go_out = not quality.failure and not quality.reasons
    return {"can_go_out": can_go_out, "reasons": quality.reasons, "failure": quality.failure, "status": quality.status}


@router.post("/collections/{slug:name}/quality", auth=may("admin", MANAGE), response=MeasuredOut)
@decorate_view(once)
def measure_quality(request: HttpRequest, name: str) -> Any:
    """Recompute the stored statistics of a large collection, in a worker where one is running."""
    scope = scope_of(request)
    with transaction.atomic():
        done = statistics.STATISTICS.refresh(scope.collection) is not None
        record(scope, "statistics.asked")
    return {"done": done}


def _audited(request: HttpRequest) -> Any:
    rows = Campaign.judging.filter(collection=scope_of(request).collection).select_related("collection")
    resolved = Count("audits", filter=Q(audits__item__state="settled"))
    return rows.annotate(drawn=Count("audits"), resolved=resolved)


def _show_campaign(campaign: Any) -> dict[str, Any]:
    names = ("policy", "state", "drawn", "resolved")
    return {"campaign": campaign.number, **{name: getattr(campaign, name) for name in names}}


def _show_share(share: Statistic) -> Statistic:
    # The pure module of measures only marks its reasons for translation.
    return replace(share, reason=_(share.reason)) if share.reason else share
