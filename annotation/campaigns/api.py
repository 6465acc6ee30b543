"""Campaigns: what one would cost, starting one, how far it is, and pause, resume, cancel, retry."""

from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from annotation.campaigns.people import estimate_people
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.paging import Cursor, Limit, Page, page_of
from api.problems import Given
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from judges.campaigns import lifecycle
from judges.campaigns.configurations import CampaignOptions, Configuration, build_configuration
from judges.campaigns.forecasts import forecast_judging
from judges.campaigns.selectors import annotate_cost, campaign_status
from judges.models import Campaign

router = Router(tags=["campaigns"])
Act = Literal["pause", "resume", "cancel", "retry-failed"]
ACTS: dict[Act, Any] = {
    "pause": lifecycle.pause,
    "resume": lifecycle.resume,
    "cancel": lifecycle.cancel,
    "retry-failed": lifecycle.retry_failed,
}


class CampaignIn(Given):
    """Panel, policy and limits of a campaign: the options of the command `judge`."""

    policy: Literal["debate", "ensemble", "debate+ensemble", "single", "human"] | None = Field(
        None, description="Null: what the panel can do."
    )
    panel: str | None = Field(None, max_length=100, description="Null: the panel that is in use.")
    rounds: int | None = Field(None, ge=1, le=5)
    agents: Literal[4] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    adjudicator: str = Field("", max_length=100)
    filter: list[str] = Field([], max_length=3)
    batch: bool = False
    limit: int | None = Field(None, ge=1, lt=1 << 31, description="Pairs at most.")
    budget: float | None = Field(None, gt=0, le=1e9, description="USD.")
    max_calls: int | None = Field(None, ge=1, lt=1 << 62)
    again: bool = Field(False, description="Judge pairs that this configuration has judged already.")
    failed_to_people: bool = False


class EstimateOut(Schema):
    """Estimate of a campaign: calls, cost and people's hours; `cost` null: no judge has a known price."""

    pairs: int
    calls: float
    calls_most: float
    cost: float | None = Field(description="USD.")
    cost_most: float | None
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
    """A campaign after an act; `retried`: pairs that are judged again."""

    number: int
    state: str
    retried: int


def _configuration(body: CampaignIn) -> Configuration:
    options = CampaignOptions(
        agents=body.agents,
        temperature=body.temperature,
        adjudicator=body.adjudicator,
        filter=body.filter,
        batch=body.batch,
    )
    return build_configuration(panel=body.panel, policy=body.policy, rounds=body.rounds, options=options)


@router.get("/collections/{slug:name}/campaigns", auth=may("admin"), response=Page[CampaignOut])
def list_campaigns(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the campaigns, the oldest first."""
    # Campaigns that only pay for a job's calls are no campaigns to a reader.
    rows = Campaign.judging.filter(collection=scope_of(request).collection)
    return page_of(annotate_cost(rows), after, limit, _show_campaign)


def _show_campaign(row: Any) -> dict[str, Any]:
    shown = ("policy", "state", "panel", "rounds", "budget", "spent", "created_at", "finished_at")
    return {"number": row.number, **{name: getattr(row, name) for name in shown}}


@router.post("/collections/{slug:name}/campaigns/estimate", auth=may("admin"), response=EstimateOut)
def estimate_campaign(request: HttpRequest, name: str, body: CampaignIn) -> Any:
    """Estimate calls, money and people's hours of a campaign; nothing starts."""
    collection, wanted = scope_of(request).collection, _configuration(body)
    expected = forecast_judging(collection, wanted, limit=body.limit, again=body.again)
    pairs = lifecycle.pairs_to_judge(collection, wanted, limit=body.limit, again=body.again)
    calls = expected.calls.expected if expected else 0.0
    people = estimate_people(collection, wanted, pairs, calls)
    return {
        "pairs": pairs,
        "calls": calls,
        "calls_most": expected.calls.upper if expected else 0.0,
        "cost": expected.cost.expected if expected and expected.cost else None,
        "cost_most": expected.cost.upper if expected and expected.cost else None,
        "pairs_to_people": people["pairs"],
        "hours_of_people": people["hours"],
        "people_by": people["basis"],
    }


@router.post("/collections/{slug:name}/campaigns", auth=may("admin", MANAGE), response=StartedOut)
@decorate_view(once)
def start_campaign(request: HttpRequest, name: str, body: CampaignIn) -> Any:
    """Start a campaign, or go on with the one that has this configuration."""
    scope, wanted = scope_of(request), _configuration(body)
    limits: dict[str, Any] = {"limit": body.limit, "budget": body.budget, "max_calls": body.max_calls}
    with transaction.atomic():
        started = lifecycle.start_campaign(
            collection=scope.collection,
            wanted=wanted,
            again=body.again,
            failed_to_people=body.failed_to_people,
            **limits,
        )
        number = started.campaign.number if started.campaign else None
        record(scope, "campaign.started", campaign=number, pairs=started.added, **limits)
    return {"campaign": number, "added": started.added, "joined": started.joined}


@router.get("/collections/{slug:name}/campaigns/{number}", auth=may("admin"), response=StatusOut)
def read_campaign(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far a campaign is."""
    collection = scope_of(request).collection
    return {"status": campaign_status(collection, _find_campaign(collection, number))}


@router.post(
    "/collections/{slug:name}/campaigns/{number}/{act}",
    auth=may("admin", MANAGE),
    response=ControlledOut,
)
@decorate_view(once)
def control_campaign(request: HttpRequest, name: str, number: int, act: Act) -> Any:
    """Pause, resume or cancel a campaign, or retry its failed pairs."""
    scope = scope_of(request)
    found = _find_campaign(scope.collection, number)
    with transaction.atomic():
        done = ACTS[act](campaign=found)
        # In the transaction of the act: the audit log neither misses one nor tells of one that was rolled back.
        record(scope, "campaign.control", campaign=found.number, what=act)
    found.refresh_from_db()
    # Acts return the campaign, but retrying returns how many pairs are judged again.
    return {"number": found.number, "state": found.state, "retried": done if isinstance(done, int) else 0}


def _find_campaign(collection: Collection, number: int) -> Campaign:
    return numbered_or_404(Campaign.judging, collection, number, _("Campaign not found."))
