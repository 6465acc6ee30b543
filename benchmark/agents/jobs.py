"""Jobs with agents: begun, gone on with, their campaign, their limits. What they do: searching, grading, references."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from importlib import import_module
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from django.db import connection, transaction
from django.utils.translation import gettext as _

from benchmark.models import AgentJob, AgentSample
from corpus.errors import BadInput, Incomplete, QuorumError
from corpus.models import Collection
from jobs import leases
from jobs.leases import Lease
from jobs.models import JobState
from jobs.notifications import notify
from judges.conversations.requests import ConversationResults
from judges.models import Campaign
from judges.prompts.render import prompt_versions
from judges.records import Judge
from judges.retrieval import job_campaigns, model_requests

P = ParamSpec("P")
T = TypeVar("T")

WORK_ON_AGENTS = "benchmark.work_on_agents"
AT_ONCE = 128  # Conversations that go on together: a step waits for the one before, so many fill an account.

# Dotted paths of what each kind does, imported on first use.
KINDS = {
    AgentJob.Kind.SEARCH: "benchmark.agents.searching",
    AgentJob.Kind.GRADE: "benchmark.agents.grading",
    AgentJob.Kind.REFERENCE: "benchmark.agents.references",
}


class AgentWork(Protocol):
    """The interface of the module that does one kind of agents' job."""

    def work(self, job: AgentJob, lease: Lease) -> None:
        """Do what is missing of a claimed job; return soon after `lease.should_stop()`. Raises Incomplete."""

    def count_done(self, job: AgentJob) -> tuple[int, int]:
        """Return (done, total) of the job's results."""


def work_module(kind: str) -> AgentWork:
    """The module that does this kind of work."""
    return cast(AgentWork, import_module(KINDS[AgentJob.Kind(kind)]))


def prompt_hashes(*names: str) -> list[str]:
    """Hashes of the prompts in their present versions, which the results depend on."""
    return [prompt_versions()[name][0] for name in names]


def start_or_join(
    collection: Collection,
    kind: AgentJob.Kind,
    depends: Mapping[str, Any],
    judges: Sequence[Judge],
    *,
    total: int,
    limits: Mapping[str, Any],
    sample: AgentSample | None = None,
    graded: AgentJob | None = None,
    by: str = "",
) -> AgentJob:
    """Begin a job, or go on with the one that depends on the same; its limits replace the old ones. Raises BadInput."""
    given = job_campaigns.limits_of(limits)
    model_requests.check_limits(collection, judges, given["budget"], given["max_calls"])
    # The same request finds the same job, so that nothing is asked, or paid for, twice; limits are no part of it.
    whole = {"kind": kind.value, "sample": sample and sample.pk, "graded": graded and graded.pk, **depends}
    key = sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    with transaction.atomic():
        job, made = AgentJob.objects.get_or_create(
            collection=collection,
            key=key,
            defaults={
                **{"kind": kind.value, "sample": sample, "graded": graded, "total": total, "made_by": by},
                "options": job_campaigns.replace_limits(depends, given),
            },
        )
        if not made and job.state != JobState.READY:
            set_limits(job, **given)
        if made or leases.resume(job):
            transaction.on_commit(lambda: notify(WORK_ON_AGENTS))
    return AgentJob.objects.select_related("collection", "sample", "graded").get(pk=job.pk)


def set_limits(job: AgentJob, *, budget: float | None, max_calls: int | None) -> None:
    """Set the most that a job may spend in all; None: no limit. Raises BadInput for limits that cannot be held."""
    job_campaigns.set_job_limits(job, list, budget=budget, max_calls=max_calls)


def go_on(job: AgentJob) -> bool:
    """Do the rest of a cancelled or failed job. False in any other state."""
    went = leases.resume(job)
    if went:
        transaction.on_commit(lambda: notify(WORK_ON_AGENTS))
    return went


def cancel_job(job: AgentJob) -> bool:
    """Cancel a job; its results stay. Returns False when it is over already."""
    return leases.cancel(job, **job_progress(job))


def job_progress(job: AgentJob) -> dict[str, int]:
    """Return `done` and `total` of a job that nobody works on."""
    done, total = work_module(job.kind).count_done(job)
    return {"done": done, "total": total}


def work_on_agents(job: AgentJob, shutting_down: Callable[[], bool] = lambda: False) -> None:
    """Do a claimed job, until it is over or somebody else's, or waits again because this worker ends."""
    leases.perform(
        job,
        lambda lease: work_module(job.kind).work(job, lease),
        stopping=shutting_down,
        expected=QuorumError,
        last=lambda: job_progress(job),
    )


def campaign_of(job: AgentJob, judges: Sequence[Judge]) -> Campaign:
    """The campaign that keeps the job's calls, opened when it is first worked on."""
    return job_campaigns.campaign_of(job, lambda: judges, f"agents {job.pk}, {job.kind}")


class DatabaseThread:
    """A context with one thread, off the loop that calls run on, for what blocks: searching, reading, storing.

    It keeps its connection to the database: a new one for every search would cost more than the search.
    """

    def __enter__(self) -> "DatabaseThread":
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="agents")
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.submit(lambda: connection.close())  # its own, not that of the thread that says so
        self._pool.shutdown()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the work there, and return what it returned."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))


def store_result(job: AgentJob, save: Callable[[], object]) -> None:
    """Store a result of a running job. Raises LeaseLost when the job is somebody else's by now."""
    with transaction.atomic():
        # The row's lock and its token keep a worker that lost its lease from writing beside the new one.
        leases.lock_held(job)
        save()


def check_end(job: AgentJob, found: ConversationResults[bool], lost: Sequence[str]) -> None:
    """Raise Incomplete when a limit ended the work, or some calls were never answered; what is whole stays."""
    if found.spent:
        raise job_campaigns.describe_stop(job, found.spent)
    if lost and not found.stopped:
        told = _("%(count)d conversations got no response (%(error)s). Resume the job to retry them")
        raise Incomplete(told % {"count": len(lost), "error": lost[-1]})


def newest_job(collection: Collection, kind: AgentJob.Kind, **only: Any) -> AgentJob | None:
    """The newest job of a kind; those that hold nothing yet count, too."""
    rows = AgentJob.objects.select_related("collection", "sample", "graded")
    return rows.filter(collection=collection, kind=kind, **only).order_by("-pk").first()


def require_search(collection: Collection, protocol: str | None = None) -> AgentJob:
    """The newest job of agents' answers. Raises BadInput where there is none."""
    only = {"options__protocol": protocol} if protocol else {}
    job = newest_job(collection, AgentJob.Kind.SEARCH, **only)
    if job is None:
        raise BadInput(_("Agents have not searched %(name)s yet: start that first") % {"name": collection.name})
    return job
