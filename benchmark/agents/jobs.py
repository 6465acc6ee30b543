"""What the three kinds of agent jobs share: searching, grading, and writing reference answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from django.db import connection, transaction
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.models import AgentJob
from corpus.errors import BadInput
from corpus.models import Collection
from jobs import leases
from jobs.leases import Lease
from judges.conversations.requests import AT_ONCE, Conversation, Subject
from judges.costs.judge_records import judges_of
from judges.engine.plan import raise_output_limit
from judges.model_jobs.jobs import BatchOutcome, JobPlan, ModelJobKind, Options, ask_in_batches, hold_conversations
from judges.models import Campaign
from judges.prompts.render import prompt_versions
from judges.records import Judge

P = ParamSpec("P")
T = TypeVar("T")

# Dotted paths of the kinds, imported on first use.
KINDS = {
    AgentJob.Kind.SEARCH: "benchmark.agents.searching",
    AgentJob.Kind.GRADE: "benchmark.agents.grading",
    AgentJob.Kind.REFERENCE: "benchmark.agents.references",
}


class AgentJobs(ModelJobKind[AgentJob]):
    """Agent jobs of every kind; the methods here pass each job to the class of its kind."""

    model, task, purpose = AgentJob, "benchmark.work_on_agents", "agents"
    kind: AgentJob.Kind
    name, home, title = "agents", "agents", gettext_lazy("Agents")
    missing = gettext_lazy("Job with agents not found.")
    started, controlled, detail = "agents.started", "agents.control", "job"

    @property
    def rows(self) -> Any:
        """The jobs, with their collections, samples and graded searches."""
        return AgentJob.objects.select_related("collection", "sample", "graded")

    def build_plan(
        self, depends: Options, judges: Sequence[Judge], total: int, parts: Sequence[Any] = (), **columns: Any
    ) -> JobPlan:
        """Build the plan of a job whose results depend on `depends` and on the rows in `columns`."""
        keys = {name: row and row.pk for name, row in ({"sample": None, "graded": None} | columns).items()}
        whole = {"kind": self.kind.value, **keys, **depends}
        return JobPlan(depends, judges, whole, total, {"kind": self.kind.value, **columns}, parts)

    def judges_of(self, job: AgentJob) -> Sequence[Judge]:
        return kind_named(job.kind).judges_of(job)

    def count_done(self, job: AgentJob) -> tuple[int, int]:
        return kind_named(job.kind).count_done(job)

    def work(self, job: AgentJob, lease: Lease) -> None:
        kind_named(job.kind).work(job, lease)

    def campaign_of(self, job: AgentJob, purpose: str = "") -> Campaign:
        return super().campaign_of(job, purpose or f"{self.name_of(job)}, {job.kind}")

    def address_of(self, job: AgentJob) -> str:
        """Return the address of the page that shows the job: the table or the reference answers."""
        address = reverse(kind_named(job.kind).home, args=[job.collection.name])
        protocol = (job.graded or job).options.get("protocol")
        return f"{address}?protocol={protocol}" if protocol else address


AGENTS = AgentJobs()


def kind_named(kind: str) -> AgentJobs:
    """Return the class instance of a kind of job, imported on first use."""
    agent_jobs: AgentJobs = import_module(KINDS[AgentJob.Kind(kind)]).KIND
    return agent_jobs


def judge_in(job: AgentJob) -> Judge:
    """Return the one judge of a grading or reference job, with its output limit raised for a long answer."""
    (version,) = job.options["judge"].values()
    return raise_output_limit(judges_of([version])[0])


def prompt_hashes(*names: str) -> list[str]:
    """Return the hashes of the prompts' current versions, which the results depend on."""
    return [prompt_versions()[name][0] for name in names]


def converse(
    job: AgentJob,
    lease: Lease,
    campaign: Campaign,
    subjects: Sequence[Subject],
    ask: Callable[[Conversation], Awaitable[str]],
    *,
    phase: str,
    done: int,
    at_once: int = AT_ONCE,
) -> None:
    """Hold a conversation about each subject.

    `ask` stores the result of one conversation, or returns why a model could not be reached.
    `done`: the number of results stored before. Raises Incomplete.
    """
    total, problems = done + len(subjects), list[str]()

    async def hold_one(conversation: Conversation) -> None:
        if problem := await ask(conversation):
            problems.append(problem)

    def hold_batch(batch: Sequence[Subject]) -> BatchOutcome:
        outcome = hold_conversations(
            campaign, batch, hold_one, lease, done=done, total=total, phase=phase, at_once=at_once
        )
        error = problems[-1] if problems else ""
        return BatchOutcome(len(batch), len(batch) - len(problems), error, outcome.spent, outcome.stopped)

    ask_in_batches(job, lease.should_stop, [subjects], hold_batch, total)


class DatabaseThread:
    """A context with one thread for work that would block the event loop: searching, reading, storing.

    The thread keeps its database connection: opening one for every search would cost more than the search.
    """

    def __enter__(self) -> "DatabaseThread":
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="agents")
        return self

    def __exit__(self, *_: object) -> None:
        # Submitted, so that the pool's thread closes its own connection and not the caller's.
        self._pool.submit(lambda: connection.close())
        self._pool.shutdown()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in the thread, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))


def store_result(job: AgentJob, save: Callable[[], object]) -> None:
    """Store a result of a running job. Raises LeaseLost if another worker has taken the job over."""
    with transaction.atomic():
        # The lock on the row and its token keep a worker that lost its lease from writing beside the new one.
        leases.lock_held(job)
        save()


def newest_job(collection: Collection, kind: AgentJob.Kind, **only: Any) -> AgentJob | None:
    """Return the newest job of a kind, whether or not it has results."""
    rows = AgentJob.objects.select_related("collection", "sample", "graded")
    return rows.filter(collection=collection, kind=kind, **only).order_by("-pk").first()


def require_search(collection: Collection, protocol: str | None = None) -> AgentJob:
    """Return the newest search. Raises BadInput if there is none."""
    only = {"options__protocol": protocol} if protocol else {}
    job = newest_job(collection, AgentJob.Kind.SEARCH, **only)
    if job is None:
        raise BadInput(_("Agents have not searched %(name)s yet: start that first") % {"name": collection.name})
    return job
