"""Common parts of operations on jobs that ask models: estimates, limits, cancel and go on."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Schema

from annotation.audit_log.recording import record
from api.authentication import scope_of
from api.problems import Given
from corpus.errors import BadInput
from jobs.models import LeasedJob
from judges.campaigns.estimates import Estimate
from judges.retrieval.job_campaigns import limits_of

JobAct = Literal["cancel", "go-on"]
Job = TypeVar("Job", bound=LeasedJob)


class LimitsIn(Given):
    """Limits of what a job may spend in all; null: none. For `go-on` a limit that is left out stays as it is."""

    budget: float | None = Field(None, ge=0.000001, le=1e9, description="USD.")
    max_calls: int | None = Field(None, ge=1, lt=1 << 31)


class JobEstimateOut(Schema):
    """Expected calls of a job to models, and their cost. `cost` null: no known price."""

    calls: float
    calls_most: float
    cost: float | None = Field(description="USD.")
    cost_most: float | None


class ModelJobOut(Schema):
    """A job that asks models, with its progress and its limits."""

    number: int
    state: str = Field(description="waiting, running, ready, failed or cancelled.")
    phase: str
    done: int
    total: int
    error: str
    made_by: str
    created_at: datetime
    ended_at: datetime | None
    budget: float | None = Field(description="USD in all; null: no limit.")
    max_calls: int | None
    campaign: int | None = Field(description="Keeps its calls and what they cost.")


def show_estimate(found: Estimate | None) -> dict[str, Any]:
    """Return an estimate as JobEstimateOut has it; None: nothing is asked."""
    return {
        "calls": found.calls.expected if found else 0.0,
        "calls_most": found.calls.upper if found else 0.0,
        # Where nothing is asked it costs 0; null is a price that nobody knows.
        "cost": found.cost.expected if found and found.cost else None if found else 0.0,
        "cost_most": found.cost.upper if found and found.cost else None if found else 0.0,
    }


def show_model_job(row: Any) -> dict[str, Any]:
    """Return a job, read with `with_campaign_number`, as ModelJobOut has it."""
    shown = ("state", "phase", "done", "total", "error", "made_by", "created_at", "ended_at")
    about = {"number": row.number, "campaign": row.campaign_number}
    return {**about, **{name: getattr(row, name) for name in shown}, **limits_of(row.options)}


def control_model_job(
    request: HttpRequest,
    row: Any,
    act: str,
    limits: LimitsIn | None,
    *,
    acts: Mapping[str, Callable[[Any], bool]],
    set_limits: Callable[..., object],
    audit: str,
    **details: Any,
) -> None:
    """Do an act of `acts`; going on takes new limits. Raises BadInput where the state no longer allows it.

    `audit`: the word of the audit log; `details`: what it keeps beside the act.
    """
    with transaction.atomic():
        # In one transaction with the act: a job that cannot go on keeps the limits that it had.
        if act == "go-on" and limits is not None and limits.model_fields_set:
            set_limits(row, **{**limits_of(row.options), **limits.dict(exclude_unset=True)})
        if not acts[act](row):
            raise BadInput(_("No changes made: the job's state no longer allows this action."))
        record(scope_of(request), audit, **details, what=act)
    row.refresh_from_db()
