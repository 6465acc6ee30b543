"""Jobs with agents, which ask models: what searching, grading and references share."""

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
from judges.engine.plan import judges_of, raise_output_limit
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
    """Jobs with agents of any kind: each job is done by its own (`kind`)."""

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
        """Build the plan of a job whose results depend on this, beside its columns' rows."""
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
        return super().campaign_of(job, purpose or f"agents {job.pk}, {job.kind}")

    def address_of(self, job: AgentJob) -> str:
        """Return the address of the table, or of the reference answers, that shows a job."""
        address = reverse(kind_named(job.kind).home, args=[job.collection.name])
        protocol = (job.graded or job).options.get("protocol")
        return f"{address}?protocol={protocol}" if protocol else address


AGENTS = AgentJobs()


def kind_named(kind: str) -> AgentJobs:
    """The kind of job of this name."""
    found: AgentJobs = import_module(KINDS[AgentJob.Kind(kind)]).KIND
    return found


def judge_in(job: AgentJob) -> Judge:
    """The one judge of a grading or of references, with room for a long answer."""
    (version,) = job.options["judge"].values()
    return raise_output_limit(judges_of([version])[0])


def prompt_hashes(*names: str) -> list[str]:
    """Hashes of the prompts in their present versions, which the results depend on."""
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
    """Hold all conversations; `ask` stores what came of one, or says why a model could not be reached.

    `done`: results that were there before. Raises Incomplete.
    """
    total, lost = done + len(subjects), list[str]()

    async def talk(conversation: Conversation) -> None:
        if problem := await ask(conversation):
            lost.append(problem)

    def hold(batch: Sequence[Subject]) -> BatchOutcome:
        found = hold_conversations(campaign, batch, talk, lease, done=done, total=total, phase=phase, at_once=at_once)
        error = lost[-1] if lost else ""
        return BatchOutcome(len(batch), len(batch) - len(lost), error, found.spent, found.stopped)

    ask_in_batches(job, lease.should_stop, [subjects], hold, total)


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
