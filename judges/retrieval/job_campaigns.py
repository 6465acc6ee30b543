"""The campaign that keeps the calls of a job, and what the job may spend.

A job is a LeasedJob with a `collection`, `options` (limits among them) and `campaign` (its primary key, or None).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import Incomplete
from jobs import leases
from judges.costs import collection_budgets
from judges.models import Campaign
from judges.records import Judge
from judges.retrieval import model_requests

LIMITS = ("budget", "max_calls")
# Finds the judges that a job will ask; a job that has asked keeps them in the versions of its campaign.
FirstJudges = Callable[[], Sequence[Judge]]


def limits_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits among a job's options; None: there is no such limit."""
    return {name: options.get(name) for name in LIMITS}


def replace_limits(options: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with other limits; None: no limit."""
    kept = {name: value for name, value in options.items() if name not in LIMITS}
    return kept | {name: limits[name] for name in LIMITS if limits.get(name) is not None}


def set_job_limits(job: Any, judges: FirstJudges, *, budget: float | None, max_calls: int | None) -> None:
    """Set what a job may spend in all; None: no limit; what it spent so far counts. Raises BadInput.

    `judges` is called where it has asked nobody yet.
    """
    campaign = None if job.campaign is None else Campaign.objects.get(pk=job.campaign)
    # In the versions that the campaign was opened with, whose price is the one that counts.
    asked = model_requests.judges_in(campaign) if campaign else judges()
    model_requests.check_limits(job.collection, asked, budget, max_calls)
    job.options = replace_limits(job.options, {"budget": budget, "max_calls": max_calls})
    job.save(update_fields=["options"])
    # The campaign keeps its own copy of the limits, and that copy is what stops the calls.
    if campaign:
        model_requests.set_limits(campaign, budget=budget, max_calls=max_calls)


def campaign_of(job: Any, judges: FirstJudges, purpose: str) -> Campaign:
    """Return the campaign that keeps the job's calls, opened when it is first worked on. Raises LeaseLost."""
    if job.campaign is None:
        campaign = model_requests.open_campaign(job.collection, judges(), purpose, **limits_of(job.options))
        job.campaign = campaign.pk
        # The lease may have been lost while the campaign was opened; who holds it now opens their own.
        if not leases.held_row(job).update(campaign=campaign.pk):
            raise leases.LeaseLost(f"{job} was cancelled, or another worker has it")
    return Campaign.objects.select_related("collection").get(pk=job.campaign)


def describe_stop(job: Any, cap: str) -> Incomplete:
    """Return the error of a job that a limit ended: which one, and what to do."""
    what, how = collection_budgets.describe_budget_stop(job.collection, cap)
    return Incomplete(_("Stopped by %(what)s: %(how)s") % {"what": what, "how": how})
