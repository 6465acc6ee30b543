"""Runs that are made here, as jobs that may ask models. What makes a kind of run is a module of its own (KINDS)."""

from collections.abc import Callable, Sequence
from importlib import import_module
from time import monotonic
from typing import Any, Protocol, cast

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.models import RUN_NAME, Run
from benchmark.runs import rankings
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Query
from jobs.leases import Lease
from jobs.models import JobState
from judges.campaigns.estimates import Estimate
from judges.model_jobs.jobs import JobPlan, ModelJobKind, Options
from judges.model_jobs.options import replace_limits
from judges.models import Campaign
from judges.records import Judge

DEPTH = 100  # Documents of a query unless somebody asks for others.
STORE_S = 1.0  # Seconds of work that a killed worker loses, at most.

# Dotted paths of makers, imported on first use.
KINDS = {
    Run.Kind.BM25: "benchmark.runs.lexical",
    Run.Kind.HYBRID: "benchmark.runs.hybrid",
    Run.Kind.REWRITE: "benchmark.runs.expansion",
    Run.Kind.REASONING: "benchmark.runs.expansion",
    Run.Kind.DENSE: "benchmark.runs.dense",
    Run.Kind.RERANK: "benchmark.runs.reranking",
    Run.Kind.EMBEDDING: "benchmark.runs.embedding",
    Run.Kind.SPARSE: "benchmark.runs.sparse",
    Run.Kind.RERANK_FOLDER: "benchmark.runs.folder_reranking",
}

Tell = Callable[..., None]  # tell(done, total, phase=""): how far the maker is, and with what.
Stopped = Callable[[], bool]


class Maker(Protocol):
    """The interface of a maker's module.

    One that asks models also has `judges(recipe)`, all of them in their present versions, and
    `estimate(collection, recipe)`.
    """

    def check(self, collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
        """Return the completed recipe. Raises BadInput for what is wrong before any work begins."""

    def make(self, run: Run, progress: Tell, stopped: Stopped) -> None:
        """Store a ranking for every query that has none yet, batch by batch; return soon after `stopped()` is true."""


def maker_module(kind: str) -> Maker:
    """The module that makes runs of this kind."""
    return cast(Maker, import_module(KINDS[Run.Kind(kind)]))


class Runs(ModelJobKind[Run]):
    """Runs by a maker. A run is called by its name, and is the same where its recipe is."""

    model, task, purpose = Run, "benchmark.make_run", "run"
    name, home = "system", "runs"
    title, question = gettext_lazy("Runs"), gettext_lazy("Create this run?")
    started, controlled, detail = "run.started", "run.control", "run"

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Complete the recipe: `kind`, `name`, `depth`, and what the maker of the kind reads."""
        kind, of_all = str(options["kind"]), (rankings.KEEP_SELF, rankings.SYNTHETIC)
        maker: Any = maker_module(kind)
        total = len(rankings.current_queries(collection, options))
        if not total:
            raise BadInput(_("%(name)s has no queries") % {"name": collection.name})
        own = {key: value for key, value in options.items() if value is not None}
        recipe = {**maker.check(collection, own), **{key: True for key in of_all if options.get(key)}}
        columns = {"kind": kind, "name": options.get("name", ""), "depth": int(options.get("depth", DEPTH))}
        columns["instruction"] = str(recipe.get("instruction", ""))
        return JobPlan(recipe, maker.judges(recipe) if hasattr(maker, "judges") else [], None, total, columns)

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate | None:
        """Estimate the cost of a run; None where its system calls no model."""
        maker: Any = maker_module(plan.columns["kind"])
        return cast("Estimate | None", maker.estimate(collection, plan.options)) if plan.judges else None

    def find_or_create(self, collection: Collection, plan: JobPlan, row: dict[str, Any]) -> tuple[Run, bool]:
        """Return the run of this name where it is the same, else create it. Raises BadInput for a taken name."""
        run = find_run(collection, row["name"])
        if run is None:
            check_name(collection, row["name"])
            # The name's unique constraint decides between two starts, hence no look before.
            try:
                with transaction.atomic():
                    return Run.objects.create(collection=collection, **row), True
            except IntegrityError:  # somebody took the name in between
                raise name_taken_error(collection, row["name"]) from None
        same = replace_limits(run.recipe, {}) == plan.options and (run.kind, run.depth) == (row["kind"], row["depth"])
        if not same:
            raise name_taken_error(collection, run.name)
        return run, False

    def judges_of(self, job: Run) -> Sequence[Judge]:
        """Return whom a run asks; nobody, where its maker asks no model."""
        maker: Any = maker_module(job.kind)
        return maker.judges(job.recipe) if hasattr(maker, "judges") else []

    def count_done(self, job: Run) -> tuple[int, int]:
        """Count the ranked queries, and all."""
        total = len(rankings.current_queries(job.collection, job.recipe))
        return total - len(rankings.unranked_queries(job)), total

    def work(self, job: Run, lease: Lease) -> None:
        """Rank the queries that have no ranking yet."""
        maker_module(job.kind).make(job, lease.progress, lease.should_stop)

    def campaign_of(self, job: Run, purpose: str = "") -> Campaign:
        """Return the campaign that keeps the run's calls."""
        return super().campaign_of(job, purpose or self.name_of(job))

    def name_of(self, job: Run) -> str:
        """Return what people call a run."""
        return f"run {job.name}"

    def describe(self, job: Run) -> dict[str, Any]:
        """Return what the audit log keeps of a run."""
        return {"run": job.name}

    def describe_start(self, job: Run) -> dict[str, Any]:
        """Return what the audit log keeps of a start."""
        return {"run": job.name, "kind": job.kind}

    def address_of(self, job: Run) -> str:
        """Return the address of the run's page."""
        return reverse(self.name, args=[job.collection.name, job.pk])

    def find(self, collection: Collection, number: Any) -> Run:
        """Return the collection's run of this key. Raises Http404."""
        return get_object_or_404(self.rows, pk=number, collection=collection, is_deleted=False)


RUNS = Runs()


def check_name(collection: Collection, name: str) -> None:
    """Raises BadInput for a name that no run may have, or that one has."""
    try:
        RUN_NAME(name)
    except ValidationError as error:
        told = _("Run %(name)s: %(why)s") % {"name": repr(name), "why": error.messages[0]}
        raise BadOption("name", told.removesuffix(".")) from None
    if find_run(collection, name) is not None:
        raise name_taken_error(collection, name)


def name_taken_error(collection: Collection, name: str) -> BadOption:
    """The error for a name that stands already, to be raised."""
    told = _("%(collection)s already has a run %(name)s: choose another name, or delete that run")
    return BadOption("name", told % {"collection": collection.name, "name": name})


def find_run(collection: Collection, name: str) -> Run | None:
    """The collection's run of this name, however far it is."""
    return Run.objects.select_related("collection").filter(collection=collection, name=name, is_deleted=False).first()


def ready_run(collection: Collection, name: str, option: str = "run") -> Run:
    """The collection's run of this name, once it is made. Raises BadOption."""
    run = find_run(collection, name)
    values = {"collection": collection.name, "name": name}
    if run is None:
        raise BadOption(option, _("%(collection)s has no run %(name)s") % values)
    if run.state != JobState.READY:
        raise BadOption(option, _("Run %(name)s of %(collection)s is not ready: wait until it is finished") % values)
    return run


def each_query(
    run: Run, rank: Callable[[Query], RankedQuery], progress: Tell, stopped: Stopped, phase: str = ""
) -> None:
    """Rank every query that has no ranking yet, and store what there is every second."""
    waiting = rankings.unranked_queries(run)
    total = len(rankings.current_queries(run.collection, run.recipe))
    done, since = total - len(waiting), monotonic()
    batch: dict[int, RankedQuery] = {}
    progress(done, total, phase)
    # Stored by time and not by number: a query may take milliseconds or minutes.
    for query in waiting:
        if stopped():
            break
        batch[query.pk] = rank(query)
        if monotonic() - since >= STORE_S:
            rankings.store(run, batch)
            done, batch, since = done + len(batch), {}, monotonic()
            progress(done, total, phase)
    rankings.store(run, batch)
    progress(done + len(batch), total, phase)
