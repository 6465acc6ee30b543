"""Runs that are made here, as jobs that may ask models. Each kind of run has a module that makes it (KINDS)."""

import re
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
from judges.records import Judge

DEPTH = 100  # Documents per query by default.
STORE_S = 1.0  # The most seconds of work that a killed worker loses.

# Dotted paths of makers, imported on first use.
KINDS = {
    Run.Kind.BM25: "benchmark.runs.lexical",
    Run.Kind.STATIC: "benchmark.runs.static",
    Run.Kind.HYBRID: "benchmark.runs.hybrid",
    Run.Kind.REWRITE: "benchmark.runs.expansion",
    Run.Kind.REASONING: "benchmark.runs.expansion",
    Run.Kind.DENSE: "benchmark.runs.dense",
    Run.Kind.RERANK: "benchmark.runs.reranking",
    Run.Kind.EMBEDDING: "benchmark.runs.embedding",
    Run.Kind.SPARSE: "benchmark.runs.sparse",
    Run.Kind.RERANK_FOLDER: "benchmark.runs.folder_reranking",
    Run.Kind.SEARCH: "benchmark.runs.search",
}

Progress = Callable[..., None]  # progress(done, total, phase=""): called as the work proceeds.
ShouldStop = Callable[[], bool]


class Maker(Protocol):
    """The interface of a module that makes runs of a kind.

    A module that asks models also has `judges(recipe)`, which returns their current versions, and
    `estimate(collection, recipe)`.
    """

    def check(self, collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
        """Return the completed recipe. Raises BadInput for an invalid one."""

    def make(self, run: Run, progress: Progress, should_stop: ShouldStop) -> None:
        """Rank every query that has no ranking yet, batch by batch; return soon after `should_stop()` is true."""


def maker_module(kind: str) -> Maker:
    """Import the module that makes runs of this kind."""
    return cast(Maker, import_module(KINDS[Run.Kind(kind)]))


class Runs(ModelJobKind[Run]):
    """Runs as jobs. A run is known by its name; a start with the same name and recipe joins it."""

    model, task, purpose = Run, "benchmark.make_run", "run"
    name, home = "system", "runs"
    title, question = gettext_lazy("Runs"), gettext_lazy("Create this run?")
    started, controlled, detail = "run.started", "run.control", "run"

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Complete the recipe: `kind`, `name`, `depth`, and the options of the kind's module."""
        kind, of_all = str(options["kind"]), (rankings.KEEP_SELF, rankings.SYNTHETIC)
        maker: Any = maker_module(kind)
        total = len(rankings.current_queries(collection, options))
        if not total:
            raise BadInput(_("%(name)s has no queries") % {"name": collection.name})
        named_options = {key: value for key, value in options.items() if value is not None}
        recipe = {**maker.check(collection, named_options), **{key: True for key in of_all if options.get(key)}}
        columns = {"kind": kind, "name": options.get("name", ""), "depth": int(options.get("depth", DEPTH))}
        columns["instruction"] = str(recipe.get("instruction", ""))
        return JobPlan(recipe, maker.judges(recipe) if hasattr(maker, "judges") else [], None, total, columns)

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate | None:
        """Estimate the cost of a run; None where its system calls no model."""
        maker: Any = maker_module(plan.columns["kind"])
        return cast("Estimate | None", maker.estimate(collection, plan.options)) if plan.judges else None

    def find_or_create(self, collection: Collection, plan: JobPlan, row: dict[str, Any]) -> tuple[Run, bool]:
        """Return the run of this name if it is the same, otherwise create it. Raises BadInput for a taken name."""
        run = find_run(collection, row["name"])
        if run is None:
            check_name(collection, row["name"])
            # The unique constraint on the name decides between two simultaneous starts.
            try:
                with transaction.atomic():
                    return Run.objects.create(collection=collection, **row), True
            except IntegrityError:  # another start took the name in between
                raise name_taken_error(collection, row["name"]) from None
        if not self._has_same_plan(run, plan):
            if self._has_same_plan(run, plan, changed=("engine", "settings")):
                raise endpoint_changed_error(run)
            raise name_taken_error(collection, run.name)
        return run, False

    def _has_same_plan(self, run: Run, plan: JobPlan, changed: Sequence[str] = ()) -> bool:
        """Return whether a run is the one of a plan, whatever it has of the options in `changed`."""
        recipe = {**replace_limits(run.recipe, {}), **{name: plan.options.get(name) for name in changed}}
        return recipe == plan.options and (run.kind, run.depth) == (plan.columns["kind"], plan.columns["depth"])

    def name_dated(self, collection: Collection, options: Options) -> str:
        """Return the name of a run that is named by its day: of the day's last one, if that is the same and unfinished.

        Otherwise a free name: an engine may answer differently an hour later. Raises BadInput as `plan` does.
        """
        name = str(options["name"])
        dated = Run.objects.filter(collection=collection, is_deleted=False, name__regex=rf"^{re.escape(name)}(-\d+)?$")
        last = dated.order_by("-pk").first()
        if last is None or last.state == JobState.READY:
            return free_name(collection, name)
        is_same = self._has_same_plan(last, self.plan(collection, options))
        return last.name if is_same else free_name(collection, name)

    def judges_of(self, job: Run) -> Sequence[Judge]:
        """Return the judges that a run asks, if any."""
        maker: Any = maker_module(job.kind)
        return maker.judges(job.recipe) if hasattr(maker, "judges") else []

    def count_done(self, job: Run) -> tuple[int, int]:
        """Count the ranked queries, and all queries."""
        total = len(rankings.current_queries(job.collection, job.recipe))
        return total - len(rankings.unranked_queries(job)), total

    def work(self, job: Run, lease: Lease) -> None:
        """Rank the queries that have no ranking yet."""
        maker_module(job.kind).make(job, lease.progress, lease.should_stop)

    def name_of(self, job: Run) -> str:
        """Return the name of a run in messages."""
        return f"run {job.name}"

    def describe(self, job: Run) -> dict[str, Any]:
        """Return what the audit log records of a run."""
        return {"run": job.name}

    def describe_start(self, job: Run) -> dict[str, Any]:
        """Return what the audit log records of a start."""
        return {"run": job.name, "kind": job.kind}

    def address_of(self, job: Run) -> str:
        """Return the address of the run's page."""
        return reverse(self.name, args=[job.collection.name, job.pk])

    def find(self, collection: Collection, number: Any) -> Run:
        """Return the collection's run of this key. Raises Http404."""
        return get_object_or_404(self.rows, pk=number, collection=collection, is_deleted=False)


RUNS = Runs()


def check_name(collection: Collection, name: str) -> None:
    """Raise BadInput for an invalid or taken name."""
    try:
        RUN_NAME(name)
    except ValidationError as error:
        message = _("Run %(name)s: %(why)s") % {"name": repr(name), "why": error.messages[0]}
        raise BadOption("name", message.removesuffix(".")) from None
    if find_run(collection, name) is not None:
        raise name_taken_error(collection, name)


def free_name(collection: Collection, name: str) -> str:
    """Return this name for a run, with -2, -3 ... where it is taken."""
    rows = Run.objects.filter(collection=collection, is_deleted=False, name__startswith=name)
    names, number, free = set(rows.values_list("name", flat=True)), 1, name
    while free in names:
        number += 1
        free = f"{name}-{number}"
    return free


def name_taken_error(collection: Collection, name: str) -> BadOption:
    """Return the error for a taken name."""
    message = _("%(collection)s already has a run %(name)s: choose another name, or delete that run")
    return BadOption("name", message % {"collection": collection.name, "name": name})


def endpoint_changed_error(run: Run) -> BadOption:
    """Return the error for the name of a run whose endpoint has other settings by now."""
    message = _("The settings of %(endpoint)s have changed since run %(run)s began: choose another name, or delete it")
    if run.state != JobState.READY:
        message = _(
            "The settings of %(endpoint)s have changed since run %(run)s began: resume that run on its page, which "
            "keeps the settings of then, or choose another name"
        )
    return BadOption("name", message % {"endpoint": run.recipe["endpoint"], "run": run.name})


def find_run(collection: Collection, name: str) -> Run | None:
    """Return the collection's run of this name in any state."""
    return Run.objects.select_related("collection").filter(collection=collection, name=name, is_deleted=False).first()


def ready_run(collection: Collection, name: str, option: str = "run") -> Run:
    """Return the collection's finished run of this name. Raises BadOption."""
    run = find_run(collection, name)
    values = {"collection": collection.name, "name": name}
    if run is None:
        raise BadOption(option, _("%(collection)s has no run %(name)s") % values)
    if run.state != JobState.READY:
        raise BadOption(option, _("Run %(name)s of %(collection)s is not ready: wait until it is finished") % values)
    return run


def rank_each_query(
    run: Run, rank: Callable[[Query], RankedQuery], progress: Progress, should_stop: ShouldStop, phase: str = ""
) -> None:
    """Rank every query that has no ranking yet, and store the new rankings every second."""
    queries = rankings.unranked_queries(run)
    total = len(rankings.current_queries(run.collection, run.recipe))
    done, stored_at = total - len(queries), monotonic()
    batch: dict[int, RankedQuery] = {}
    progress(done, total, phase)
    # Stored by time and not by number: a query may take milliseconds or minutes.
    for query in queries:
        if should_stop():
            break
        batch[query.pk] = rank(query)
        if monotonic() - stored_at >= STORE_S:
            rankings.store(run, batch)
            done, batch, stored_at = done + len(batch), {}, monotonic()
            progress(done, total, phase)
    rankings.store(run, batch)
    progress(done + len(batch), total, phase)
