"""The life of a job that asks models: estimated, started or joined, limited, worked on, cancelled, resumed, paid for.

What a kind of job has of its own (what it depends on, what is still missing, the work) is a
subclass of ModelJobKind in its room. A job of the same options is the same job, whoever asks for
it: nothing is asked, or paid for, twice. What a job may spend is no part of what it is.
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
    """A job before it begins, its options checked: what it keeps, whom it asks, what its results depend on."""

    options: Options  # As the job keeps them, without limits.
    judges: Sequence[Judge]
    made_of: object  # As JSON, the same for the same job.
    total: int
    columns: Options = field(default_factory=dict)  # What else its row holds.
    parts: Sequence[Any] = ()  # What the kind makes rows of when it begins.

    @property
    def key(self) -> str:
        """The sha256 of all that the results depend on."""
        return sha256(json.dumps(self.made_of, sort_keys=True).encode()).hexdigest()


class ModelJobKind(Generic[Job]):
    """A kind of job that asks models. The attributes are its words; its room writes the first six methods."""

    model: type[Job]
    record: type[PaidOptions] | None = None  # What a start can be told.
    roles: ClassVar[Mapping[str, str]] = {}  # Of options that name judges: what these are asked.
    task: str  # Name of the Celery task that works on these jobs.
    purpose: str  # What their campaigns are for, shown in the place of a panel.
    # Pages: what their addresses are called, the list's title, the question before a start, and what is said there.
    name: str  # Of the page of one job.
    home: str  # Of the list.
    title: str | Promise
    question: str | Promise
    note: str | Promise = ""
    heading: str | Promise = ""  # Of a page that has the form alone, with what it is about.
    about: str | Promise = ""
    missing: str | Promise  # "... not found."
    # The audit log: the words for a start and for what is done to a job, and the name that the job's number has there.
    started: str
    controlled: str
    detail: str

    def __init__(self) -> None:
        if self.record is not None:
            self.start = start_service(self, self.record)

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Check the options. Raises BadInput for what is known to be wrong before anybody works."""
        raise NotImplementedError

    def prepare(self, collection: Collection, options: Options) -> Options:
        """Write what must exist before a job of these options can begin; return them with it."""
        return options

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate | None:
        """Estimate the calls of a job and their cost; None: it asks no model."""
        raise NotImplementedError

    def judges_of(self, job: Job) -> Sequence[Judge]:
        """Return whom a job will ask for the first time, in present versions. Raises BadInput."""
        raise NotImplementedError

    def count_done(self, job: Job) -> tuple[int, int]:
        """Count the results that are there, and all that are wanted."""
        raise NotImplementedError

    def work(self, job: Job, lease: Lease) -> None:
        """Do what is missing; return soon after `lease.should_stop()`. Raises Incomplete."""
        raise NotImplementedError

    def begin(self, job: Job, plan: JobPlan) -> None:
        """Write the rows that a new job begins with."""

    def has_new_work(self, job: Job) -> bool:
        """Return whether a job that was finished has something to do again."""
        return False

    def name_of(self, job: Any) -> str:
        """Return what people call a job."""
        return f"{self.purpose} {job.number}"

    def describe(self, job: Any) -> dict[str, Any]:
        """Return what the audit log keeps of a job."""
        return {self.detail: job.number}

    def describe_start(self, job: Job) -> dict[str, Any]:
        """Return what the audit log keeps of a job's start."""
        return self.describe(job)

    def address_of(self, job: Any) -> str:
        """Return the address of the page that shows a job."""
        return reverse(self.name, args=[job.collection.name, job.number])

    def home_of(self, collection: Collection) -> str:
        """Return the address of the list of a collection's jobs."""
        return reverse(self.home, args=[collection.name])

    def shown_in(self, collection: Collection) -> dict[str, Any]:
        """Return `choices` and `initial` of the form of a start, as ActionForm takes them."""
        named = {name: model_requests.judges_for(role) for name, role in self.roles.items()}
        return {"choices": {name: [(judge, judge) for judge in judges] for name, judges in named.items()}}

    def lacks(self, collection: Collection) -> str:
        """Say what has to be there before a job can be started; "" where nothing is lacking."""
        return ""

    def find(self, collection: Collection, number: Any) -> Job:
        """Return the collection's job of this number. Raises Http404."""
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
        """Estimate the cost of a job of these options. Raises BadInput as `start_or_join` does."""
        return self.estimate(collection, self.check(collection, options))

    def estimate_all(self, collections: Iterable[Collection], options: Iterable[Options]) -> Estimate:
        """Estimate the cost of several jobs together, each of a collection with its options. Raises BadInput."""
        pairs = zip(collections, options, strict=True)
        first, *others = [estimate for pair in pairs if (estimate := self.estimate_cost(*pair)) is not None]
        return sum(others, first)

    def is_done(self, collection: Collection, options: Options) -> bool:
        """Return whether a job of these options is finished already. Raises BadInput."""
        job = self.rows.filter(collection=collection, key=self.plan(collection, options).key).first()
        return job is not None and job.state == job.READY and not self.has_new_work(job)

    def start_or_join(self, collection: Collection, options: Options, by: str = "") -> Job:
        """Go on with the job of these options under the limits given now, else begin one that waits for a worker.

        Raises BadInput; nothing is left behind then.
        """
        with transaction.atomic():
            plan, limits = self.check(collection, self.prepare(collection, options)), limits_of(options)
            row = {self.model.kept_in: replace_limits(plan.options, limits), **plan.columns}
            row |= {"total": plan.total, "made_by": by}
            job, is_new = self.find_or_create(collection, plan, row)
            if is_new:
                # In one transaction with the job: a worker never claims one before its rows.
                self.begin(job, plan)
                transaction.on_commit(partial(notify, self.task))
            else:
                self.join(job, limits)
        return self.rows.get(pk=job.pk)

    def find_or_create(self, collection: Collection, plan: JobPlan, row: dict[str, Any]) -> tuple[Job, bool]:
        """Return the job of a plan, and whether it is new. `row`: the columns of a new one."""
        return self.model._default_manager.get_or_create(collection=collection, key=plan.key, defaults=row)

    def join(self, job: Job, limits: Options) -> None:
        """Go on with a job under other limits. One that is finished has nothing left to spend on. Raises BadInput."""
        if job.state == job.READY and not self.has_new_work(job):
            return
        if limits != limits_of(job.kept):
            self.set_limits(job, **limits)
        self.go_on(job)

    def set_limits(self, job: Job, *, budget: float | None, max_calls: int | None) -> None:
        """Set what a job may spend in all; None: no limit; what it spent so far counts. Raises BadInput."""
        campaign = None if job.campaign is None else Campaign.objects.get(pk=job.campaign)
        # In the versions that the campaign was opened with, whose price is the one that counts.
        judges = model_requests.judges_in(campaign) if campaign else self.judges_of(job)
        model_requests.check_limits(job.collection, judges, budget, max_calls)
        limits = {"budget": budget, "max_calls": max_calls}
        setattr(job, job.kept_in, replace_limits(job.kept, limits))
        job.save(update_fields=[job.kept_in])
        # The campaign keeps its own copy of the limits, and that copy is what stops the calls.
        if campaign:
            model_requests.set_limits(campaign, budget=budget, max_calls=max_calls)

    def go_on(self, job: Job) -> bool:
        """Do the rest of a job that was cancelled or failed, or that has new work. False in any other state."""
        if job.state == job.READY and self.has_new_work(job):
            # As failed it can be taken up again.
            self.rows.filter(pk=job.pk, state=job.READY).update(state=job.FAILED)
        went = leases.resume(job)
        if went:
            transaction.on_commit(partial(notify, self.task))
        return went

    def cancel(self, job: Job) -> bool:
        """Cancel a job; its results stay, and `go_on` asks for the rest. False when it is over already."""
        return leases.cancel(job, **self.progress_of(job))

    def progress_of(self, job: Job) -> dict[str, int]:
        """Return `done` and `total` of a job that nobody works on."""
        done, total = self.count_done(job)
        return {"done": done, "total": total}

    def perform(self, job: Job, stopping: Callable[[], bool] = lambda: False) -> None:
        """Work on a claimed job until it is over or somebody else's, or waits again because this worker ends."""
        leases.perform(
            job,
            partial(self.work, job),
            should_stop=stopping,
            # Of what a judge or the collection is to blame for, the row keeps the words; the rest goes to the log.
            expected=QuorumError,
            last=lambda: self.progress_of(job),
        )

    def campaign_of(self, job: Job, purpose: str = "") -> Campaign:
        """Return the campaign that keeps the job's calls, opened when it is first worked on. Raises LeaseLost."""
        if job.campaign is None:
            limits = limits_of(job.kept)
            purpose = purpose or f"{self.purpose} {job.pk}"
            campaign = model_requests.open_campaign(job.collection, self.judges_of(job), purpose, **limits)
            job.campaign = campaign.pk
            # The lease may be lost while the campaign opened; its new holder opens their own.
            if not leases.held_row(job).update(campaign=campaign.pk):
                raise leases.LeaseLost(f"{job} was cancelled, or another worker has it")
        return Campaign.objects.select_related("collection").get(pk=job.campaign)


def start_service(kind: ModelJobKind[Job], record: type[PaidOptions]) -> Callable[..., Job]:
    """Return the service that starts jobs of a kind, or joins them, as a record of options says."""

    def start(actor: Actor, collection: Collection, options: Any, **more: Any) -> Job:
        return kind.start_or_join(collection, {**options.for_job(), **more}, actor.name)

    start.__name__ = f"start_{record.__name__}"
    return action(kind.started, key=kind.detail, record=record)(start)


def ledger_sum_of(job: ModelJob) -> Sum | None:
    """Return the sums of a job's ledger: calls, tokens, money; None: it asked nobody yet."""
    # The campaign is only a key here: its ledger is asked, not the row.
    return sum_rows("", ledger_rows(Campaign(pk=job.campaign))) if job.campaign else None


def cost_of(job: ModelJob) -> dict[str, Any]:
    """Return what a job cost so far: calls, those answered from the cache, USD."""
    spent = ledger_sum_of(job)
    return {
        "calls": spent.calls if spent else 0,
        "calls_cached": spent.cached if spent else 0,
        "cost": spent.paid.usd if spent and spent.paid else 0.0,
    }


def describe_stop(job: ModelJob, limit: str) -> Incomplete:
    """Return the error of a job that a limit ended: which one, and what to do."""
    cause, how = collection_budgets.describe_budget_stop(job.collection, limit)
    return Incomplete(_("Stopped by %(what)s: %(how)s") % {"what": cause, "how": how})


def in_batches(keys: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the keys, so many together."""
    return (keys[at : at + size] for at in range(0, len(keys), size))


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What came of a batch: how many were asked about and answered, and what ended the asking."""

    asked: int
    answered: int
    error: str = ""
    spent: str = ""  # The cap at which money or calls ran out (Campaign.Cap).
    stopped: bool = False


def ask_in_batches(
    job: ModelJob,
    stopped: Callable[[], bool],
    batches: Iterable[T],
    ask: Callable[[T], BatchOutcome],
    total: int,
) -> bool:
    """Ask about batch after batch; False as soon as the work is to stop.

    Raises Incomplete when the limits are reached, and in the end when some of the `total` got no
    answer: what there is stays, and going on asks for the rest.
    """
    failed, error = 0, ""
    for batch in batches:
        if stopped():
            return False
        outcome = ask(batch)
        if outcome.stopped:
            return False
        if outcome.spent:
            raise describe_stop(job, outcome.spent)
        failed, error = failed + outcome.asked - outcome.answered, outcome.error or error
        # Not one answer in a whole batch: the models are away, and the rest would only wait.
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
    """Hold a job's conversations, and tell how far it is. `done`: of `total` before them."""
    lease.progress(done, total, phase)
    return requests.hold_conversations(
        campaign,
        subjects,
        converse,
        should_stop=lease.should_stop,
        done=lambda ended: lease.note(done + ended, total, phase),
        at_once=at_once,
    )
