"""The life cycle of jobs that call models: estimate, start or join, limits, work, cancellation, resumption, cost.

A kind of job is a subclass of ModelJobKind in its room, which defines what its results depend on, what
is still missing, and the work. Two starts with the same options are the same job, so no call is made,
or paid for, twice. The limits of a job are not part of its identity.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar, Generic, TypeVar

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from actions.services import Actor, action
from corpus.errors import Incomplete, QuorumError
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from jobs import leases
from jobs.leases import Lease
from jobs.notifications import notify
from judges.campaigns.estimates import Estimate
from judges.conversations import requests
from judges.conversations.requests import Conversation, Subject
from judges.costs import collection_budgets
from judges.costs.ledger import Sum, ledger_rows, sum_rows
from judges.model_jobs.options import PaidOptions, limits_of, replace_limits
from judges.models import Campaign
from judges.models.model_jobs import ModelJob
from judges.records import Judge
from judges.retrieval import model_requests

Job = TypeVar("Job", bound=ModelJob)
T = TypeVar("T")
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job before its start, with checked options."""

    options: Options  # As the job stores them, without limits.
    judges: Sequence[Judge]
    made_of: object  # Everything that the results depend on, as JSON.
    total: int
    columns: Options = field(default_factory=dict)  # Other columns of the job's row.
    parts: Sequence[Any] = ()  # What the kind's `begin` creates rows from.

    @property
    def key(self) -> str:
        """The sha256 of everything that the results depend on."""
        return sha256(json.dumps(self.made_of, sort_keys=True).encode()).hexdigest()


class ModelJobKind(Generic[Job]):
    """A kind of job that calls models. Its room defines the attributes and the first six methods."""

    model: type[Job]
    record: type[PaidOptions] | None = None  # The options of a start.
    roles: ClassVar[Mapping[str, str]] = {}  # The roles of the judges that options name.
    task: str  # Name of the Celery task that works on these jobs.
    purpose: str  # The purpose of their campaigns, shown in place of a panel.
    # Pages.
    name: str  # Of the URL of one job.
    home: str  # Of the URL of the list.
    title: str | Promise  # Of the list.
    question: str | Promise  # Before a start.
    note: str | Promise = ""  # Below the question.
    heading: str | Promise = ""  # Of the page with the form alone.
    about: str | Promise = ""  # Below that heading.
    missing: str | Promise  # "... not found."
    # The audit log: the actions of a start and of a control, and the name of the job's number.
    started: str
    controlled: str
    detail: str

    def __init__(self) -> None:
        if self.record is not None:
            self.start = start_service(self, self.record)

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Check the options, and plan a job. Raises BadInput."""
        raise NotImplementedError

    def prepare(self, collection: Collection, options: Options) -> Options:
        """Create what must exist before a job with these options can start; return the options that refer to it."""
        return options

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate | None:
        """Estimate the calls of a job and their cost; None: it calls no model."""
        raise NotImplementedError

    def judges_of(self, job: Job) -> Sequence[Judge]:
        """Return the judges of a job that has made no calls yet, in their current versions. Raises BadInput."""
        raise NotImplementedError

    def count_done(self, job: Job) -> tuple[int, int]:
        """Count the job's results so far, and all results that it needs."""
        raise NotImplementedError

    def work(self, job: Job, lease: Lease) -> None:
        """Compute the missing results; return soon after `lease.should_stop()`. Raises Incomplete."""
        raise NotImplementedError

    def begin(self, job: Job, plan: JobPlan) -> None:
        """Create the rows of a new job."""

    def has_new_work(self, job: Job) -> bool:
        """Return whether a finished job has work again."""
        return False

    def name_of(self, job: Any) -> str:
        """Return the name of a job for people."""
        return f"{self.purpose} {job.number}"

    def describe(self, job: Any) -> dict[str, Any]:
        """Return the details of a job in the audit log."""
        return {self.detail: job.number}

    def describe_start(self, job: Job) -> dict[str, Any]:
        """Return the details of a job's start in the audit log."""
        return self.describe(job)

    def address_of(self, job: Any) -> str:
        """Return the address of a job's page."""
        return reverse(self.name, args=[job.collection.name, job.number])

    def home_of(self, collection: Collection) -> str:
        """Return the address of the list of a collection's jobs."""
        return reverse(self.home, args=[collection.name])

    def shown_in(self, collection: Collection) -> dict[str, Any]:
        """Return `choices` and `initial` of the form of a start, for ActionForm."""
        names = {option: model_requests.judges_for(role) for option, role in self.roles.items()}
        return {"choices": {option: [(name, name) for name in judges] for option, judges in names.items()}}

    def lacks(self, collection: Collection) -> str:
        """Describe what is missing before a job can be started; "" if nothing is."""
        return ""

    def find(self, collection: Collection, number: Any) -> Job:
        """Return the collection's job with this number. Raises Http404."""
        rows: Any = self.rows
        job: Job = numbered_or_404(rows, collection, number, str(self.missing))
        return job

    @property
    def rows(self) -> QuerySet[Job]:
        """The jobs of this kind, with their collections."""
        return self.model._default_manager.select_related("collection")

    def check(self, collection: Collection, options: Options) -> JobPlan:
        """Check options and limits. Raises BadInput."""
        plan, limits = self.plan(collection, options), limits_of(options)
        model_requests.check_limits(collection, plan.judges, limits["budget"], limits["max_calls"])
        return plan

    def estimate_cost(self, collection: Collection, options: Options) -> Estimate | None:
        """Estimate the cost of a job with these options. Raises BadInput as `start_or_join` does."""
        return self.estimate(collection, self.check(collection, options))

    def estimate_all(self, collections: Iterable[Collection], options: Iterable[Options]) -> Estimate:
        """Estimate the total cost of several jobs, each with its collection and options. Raises BadInput."""
        estimates = [self.estimate_cost(*start) for start in zip(collections, options, strict=True)]
        first, *others = [estimate for estimate in estimates if estimate is not None]
        return sum(others, first)

    def is_done(self, collection: Collection, options: Options) -> bool:
        """Return whether a job with these options is finished already. Raises BadInput."""
        job = self.rows.filter(collection=collection, key=self.plan(collection, options).key).first()
        return job is not None and job.state == job.READY and not self.has_new_work(job)

    def start_or_join(self, collection: Collection, options: Options, by: str = "") -> Job:
        """Start a job with these options, or continue the existing one under the new limits; return it.

        A new job waits for a worker. Raises BadInput, and changes nothing then.
        """
        with transaction.atomic():
            plan, limits = self.check(collection, self.prepare(collection, options)), limits_of(options)
            row = {self.model.kept_in: replace_limits(plan.options, limits), **plan.columns}
            row |= {"total": plan.total, "made_by": by}
            job, is_new = self.find_or_create(collection, plan, row)
            if is_new:
                # In one transaction with the job, so that no worker claims it before its rows exist.
                self.begin(job, plan)
                transaction.on_commit(partial(notify, self.task))
            else:
                self.join(job, limits)
        return self.rows.get(pk=job.pk)

    def find_or_create(self, collection: Collection, plan: JobPlan, row: dict[str, Any]) -> tuple[Job, bool]:
        """Return the job of a plan, and whether it is new. `row`: the columns of a new job."""
        return self.model._default_manager.get_or_create(collection=collection, key=plan.key, defaults=row)

    def join(self, job: Job, limits: Options) -> None:
        """Continue a job under other limits; a finished job is left as it is. Raises BadInput."""
        if job.state == job.READY and not self.has_new_work(job):
            return
        if limits != limits_of(job.kept):
            self.set_limits(job, **limits)
        self.go_on(job)

    def set_limits(self, job: Job, *, budget: float | None, max_calls: int | None) -> None:
        """Set the limits of a job, which include what it has spent so far; None: no limit. Raises BadInput."""
        campaign = None if job.campaign is None else Campaign.objects.get(pk=job.campaign)
        # The prices that apply are those of the judges' versions with which the campaign was opened.
        judges = model_requests.judges_in(campaign) if campaign else self.judges_of(job)
        model_requests.check_limits(job.collection, judges, budget, max_calls)
        limits = {"budget": budget, "max_calls": max_calls}
        setattr(job, job.kept_in, replace_limits(job.kept, limits))
        job.save(update_fields=[job.kept_in])
        # The campaign has its own copy of the limits, which stops the calls.
        if campaign:
            model_requests.set_limits(campaign, budget=budget, max_calls=max_calls)

    def go_on(self, job: Job) -> bool:
        """Resume a job that was cancelled or failed, or that has new work; return whether it was resumed."""
        if job.state == job.READY and self.has_new_work(job):
            # Only a job that failed or was cancelled can be resumed.
            self.rows.filter(pk=job.pk, state=job.READY).update(state=job.FAILED)
        is_resumed = leases.resume(job)
        if is_resumed:
            transaction.on_commit(partial(notify, self.task))
        return is_resumed

    def cancel(self, job: Job) -> bool:
        """Cancel a job, which keeps its results; return False if it was over already."""
        return leases.cancel(job, **self.progress_of(job))

    def progress_of(self, job: Job) -> dict[str, int]:
        """Return `done` and `total` of a job that no worker has."""
        done, total = self.count_done(job)
        return {"done": done, "total": total}

    def perform(self, job: Job, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Work on a claimed job until it is over, its lease is lost, or this worker ends and the job waits again."""
        leases.perform(
            job,
            partial(self.work, job),
            should_stop=should_stop,
            # The messages of our own errors are shown with the job; other errors are logged.
            expected=QuorumError,
            last=lambda: self.progress_of(job),
        )

    def campaign_of(self, job: Job, purpose: str = "") -> Campaign:
        """Return the campaign to which the job's calls belong, created at its first work. Raises LeaseLost."""
        if job.campaign is None:
            limits = limits_of(job.kept)
            name = purpose or self.name_of(job)
            campaign = model_requests.open_campaign(job.collection, self.judges_of(job), name, **limits)
            job.campaign = campaign.pk
            # The lease may have been lost meanwhile; then the new holder opens another campaign.
            if not leases.held_row(job).update(campaign=campaign.pk):
                raise leases.LeaseLost(f"{job} was cancelled, or another worker has it")
        return Campaign.objects.select_related("collection").get(pk=job.campaign)


def start_service(kind: ModelJobKind[Job], record: type[PaidOptions]) -> Callable[..., Job]:
    """Return the service that starts or joins jobs of a kind, with a record of options."""

    def start(actor: Actor, collection: Collection, options: Any, **further_options: Any) -> Job:
        return kind.start_or_join(collection, {**options.for_job(), **further_options}, actor.name)

    start.__name__ = f"start_{record.__name__}"
    return action(kind.started, key=kind.detail, record=record)(start)


def ledger_sum_of(job: ModelJob) -> Sum | None:
    """Return the sums of a job's ledger: calls, tokens, costs; None: it has made no calls yet."""
    # The ledger needs only the campaign's key, so its row is not read.
    return sum_rows("", ledger_rows(Campaign(pk=job.campaign))) if job.campaign else None


def cost_of(job: ModelJob) -> dict[str, Any]:
    """Return the calls of a job so far, those answered from the cache, and their cost in USD."""
    total = ledger_sum_of(job)
    return {
        "calls": total.calls if total else 0,
        "calls_cached": total.cached if total else 0,
        "cost": total.paid.usd if total and total.paid else 0.0,
    }


def describe_stop(job: ModelJob, limit: str) -> Incomplete:
    """Return the error of a job that was stopped by a limit (Campaign.Cap): which one, and how to continue."""
    cause, remedy = collection_budgets.describe_budget_stop(job.collection, limit)
    return Incomplete(_("Stopped by %(what)s: %(how)s") % {"what": cause, "how": remedy})


def in_batches(keys: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the keys in batches of `size`."""
    return (keys[start : start + size] for start in range(0, len(keys), size))


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Result of a batch: the number of requests and of answers, and what ended it early."""

    asked: int
    answered: int
    error: str = ""
    spent: str = ""  # The limit of money or calls that was reached (Campaign.Cap).
    stopped: bool = False


def ask_in_batches(
    job: ModelJob,
    should_stop: Callable[[], bool],
    batches: Iterable[T],
    ask: Callable[[T], BatchOutcome],
    total: int,
) -> bool:
    """Ask about batch after batch; return False if the work must stop.

    Raises Incomplete if a limit is reached, and at the end if some of the `total` got no answer. The
    answers so far are kept, and resuming the job asks for the others.
    """
    failed, error = 0, ""
    for batch in batches:
        if should_stop():
            return False
        outcome = ask(batch)
        if outcome.stopped:
            return False
        if outcome.spent:
            raise describe_stop(job, outcome.spent)
        failed, error = failed + outcome.asked - outcome.answered, outcome.error or error
        # No answer in a whole batch: the models cannot be reached, and the others would only wait.
        if outcome.asked and not outcome.answered:
            break
    if failed:
        values = {"failed": f"{failed:,}", "total": f"{total:,}", "error": error}
        raise Incomplete(_("%(failed)s of %(total)s got no response (%(error)s). Resume to retry them") % values)
    return True


def hold_conversations(
    campaign: Campaign,
    subjects: Sequence[Subject],
    converse: Callable[[Conversation], Awaitable[T]],
    lease: Lease,
    *,
    done: int,
    total: int,
    phase: str = "",
    at_once: int = requests.AT_ONCE,
) -> model_requests.Replies[T]:
    """Hold a job's conversations, and report its progress: `done` of `total` before them."""
    lease.progress(done, total, phase)
    return requests.hold_conversations(
        campaign,
        subjects,
        converse,
        should_stop=lease.should_stop,
        done=lambda ended: lease.note(done + ended, total, phase),
        at_once=at_once,
    )
