"""REST API of campaigns: estimate, start, progress, and pause, resume, cancel, retry."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from actions.services import Actor
from annotation.home.campaigns.estimates import CampaignEstimate, estimate_campaign
from api.authentication import MANAGE, may, scope_of
from api.estimates import JobEstimateOut, show_estimate
from api.idempotency import once
from api.operations import COLLECTION_PATH, estimate_operation, operation
from api.paging import Cursor, Limit, Page, page_of
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from judges.campaigns.lifecycle import Started
from judges.campaigns.selectors import annotate_cost, campaign_status
from judges.campaigns.services import control_campaign, start_judging
from judges.models import Campaign

router = Router(tags=["campaigns"])
PATH = "/campaigns"


class EstimateOut(JobEstimateOut):
    """Estimate of a campaign: pairs, calls, cost and people's hours."""

    pairs: int
    pairs_to_people: int
    hours_of_people: float
    people_by: str = Field(description="policy or collection: earlier campaigns here; rule; paper: DREAM, table 11.")


class CampaignOut(Schema):
    """A campaign."""

    number: int
    policy: str
    state: str
    panel: str
    rounds: int
    budget: float | None
    spent: float
    created_at: datetime
    finished_at: datetime | None


class StartedOut(Schema):
    """The campaign that was started or joined, and its new pairs. `campaign` null: nothing was left to judge."""

    campaign: int | None
    added: int
    joined: bool


class StatusOut(Schema):
    """Progress of a campaign: the document of the command `status`."""

    status: dict[str, Any]


class ControlledOut(Schema):
    """A campaign after an action. `retried`: pairs, or lost batches, that are asked again."""

    number: int
    state: str
    retried: int


def show_start(started: Started) -> dict[str, Any]:
    number = started.campaign.number if started.campaign else None
    return {"campaign": number, "added": started.added, "joined": started.joined}


def show_cost(estimate: CampaignEstimate) -> dict[str, Any]:
    people = estimate["people"]
    return {
        "pairs": estimate["pairs"],
        "pairs_to_people": people.pairs,
        "hours_of_people": people.hours,
        "people_by": people.share_basis,
        **show_estimate(estimate["estimate"]),
    }


operation(router, start_judging, "POST", PATH, response=StartedOut, show=show_start, status=200)
estimate_operation(router, start_judging, estimate_campaign, PATH, response=EstimateOut, show=show_cost)


@router.get(COLLECTION_PATH + PATH, auth=may("results"), response=Page[CampaignOut])
def list_campaigns(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the campaigns, the oldest first."""
    # Without cost centres, which only account for another job's calls.
    rows = Campaign.judging.filter(collection=scope_of(request).collection)
    return page_of(annotate_cost(rows), after, limit, _show_campaign)


def _show_campaign(row: Any) -> dict[str, Any]:
    fields = ("policy", "state", "panel", "rounds", "budget", "spent", "created_at", "finished_at")
    return {"number": row.number, **{name: getattr(row, name) for name in fields}}


@router.get(f"{COLLECTION_PATH}{PATH}/{{number}}", auth=may("results"), response=StatusOut)
def read_campaign(request: HttpRequest, name: str, number: int) -> Any:
    """Read the progress of a campaign."""
    collection = scope_of(request).collection
    return {"status": campaign_status(collection, _find_campaign(collection, number))}


@router.post(f"{COLLECTION_PATH}{PATH}/{{number}}/{{act}}", auth=may("admin", MANAGE), response=ControlledOut)
@decorate_view(once)
def control(
    request: HttpRequest,
    name: str,
    number: int,
    act: Literal["pause", "resume", "cancel", "retry-failed", "send-again"],
) -> Any:
    """Pause, resume or cancel a campaign, retry failed pairs, or send lost batches again."""
    scope = scope_of(request)
    campaign, touched = control_campaign(Actor.of(scope), _find_campaign(scope.collection, number), act)
    return {"number": campaign.number, "state": campaign.state, "retried": touched}


def _find_campaign(collection: Collection, number: int) -> Campaign:
    return numbered_or_404(Campaign.judging, collection, number, _("Campaign not found."))
