"""Runs that are made here: begin, work, cancel, go on. What makes a kind of run is a module of its own (KINDS)."""

from collections.abc import Callable, Mapping
from importlib import import_module
from time import monotonic
from typing import Any, Protocol, cast

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from benchmark.models import RUN_NAME, Run
from benchmark.runs import limits, rankings
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput, QuorumError
from corpus.models import Collection, Query
from jobs import leases
from jobs.models import JobState
from jobs.notifications import notify
from judges.campaigns.estimates import Estimate

MAKE_RUN = "benchmark.make_run"
DEEPEST = 10_000
DEPTH = 100  # Documents of a query unless somebody asks for others.

STORE_S = 1.0  # Seconds of work that a killed worker loses, at most.

# Dotted paths of makers, imported on first use.
KINDS = {
    Run.Kind.BM25: "benchmark.runs.lexical",
    Run.Kind.HYBRID: "benchmark.runs.hybrid",
    Run.Kind.REWRITE: "benchmark.runs.rewriting",
    Run.Kind.REASONING: "benchmark.runs.reasoning",
    Run.Kind.DENSE: "benchmark.runs.dense",
    Run.Kind.RERANK: "benchmark.runs.reranking",
    Run.Kind.EMBEDDING: "benchmark.runs.embedding",
    Run.Kind.SPARSE: "benchmark.runs.sparse",
    Run.Kind.RERANK_FOLDER: "benchmark.runs.folder_reranking",
}

Tell = Callable[..., None]  # tell(done, total, phase=""): how far the maker is, and with what.
Stopped = Callable[[], bool]


class Maker(Protocol):
    """The interface of a maker's module; it may also have `estimate(collection, recipe) -> Estimate | None`."""

    def check(self, collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return the completed recipe. Raises BadInput for what is wrong before any work begins."""

    def make(self, run: Run, progress: Tell, stopped: Stopped) -> None:
        """Store a ranking for every query that has none yet, batch by batch; return soon after `stopped()` is true."""


def maker_module(kind: str) -> Maker:
    """The module that makes runs of this kind. Raises BadInput."""
    if kind not in KINDS:
        known = ", ".join(map(str, KINDS))
        raise BadInput(
            _("Unknown system type %(kind)s: choose one of %(known)s") % {"kind": repr(kind), "known": known}
        )
    return cast(Maker, import_module(KINDS[Run.Kind(kind)]))


def start_run(
    *, collection: Collection, name: str, kind: str, recipe: Mapping[str, Any], depth: int = DEPTH, by: str = ""
) -> Run:
    """Create a run that waits for a worker. Raises BadInput; nothing is left behind then."""
    check_name(collection, name)
    if not 1 <= depth <= DEEPEST:
        raise BadInput(
            _("Depth %(depth)s: choose a number from 1 to %(most)s") % {"depth": depth, "most": f"{DEEPEST:,}"}
        )
    total = len(rankings.current_queries(collection, recipe))
    if not total:
        raise BadInput(_("%(name)s has no queries") % {"name": collection.name})
    complete = _complete_recipe(collection, kind, recipe, depth)
    values = {"kind": kind, "recipe": complete, "instruction": str(complete.get("instruction", "")), "depth": depth}
    # The name's unique constraint decides between two starts, hence no look before.
    try:
        with transaction.atomic():
            run = Run.objects.create(collection=collection, name=name, total=total, made_by=by, **values)
            transaction.on_commit(lambda: notify(MAKE_RUN))
    except IntegrityError:  # somebody took the name in between
        raise name_taken_error(collection, name) from None
    return run


def _complete_recipe(collection: Collection, kind: str, recipe: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return the recipe as its maker completes it, with what all kinds of runs have. Raises BadInput."""
    of_all = (rankings.KEEP_SELF, rankings.SYNTHETIC)
    own = {key: value for key, value in recipe.items() if key not in of_all}
    complete = maker_module(kind).check(collection, own, depth)
    return {**complete, **{key: True for key in of_all if recipe.get(key)}}


def start_or_join(
    *, collection: Collection, name: str, kind: str, recipe: Mapping[str, Any], depth: int = DEPTH, by: str = ""
) -> Run:
    """Resume the run of this name where its recipe is the same, else start it. Raises BadInput.

    Limits (`budget`, `max_calls`) may be others than before: they replace the old ones.
    """
    run = find_run(collection, name)
    if run is None or run.kind != kind:
        return start_run(collection=collection, name=name, kind=kind, recipe=recipe, depth=depth, by=by)
    complete = _complete_recipe(collection, kind, recipe, depth)
    # What a run may spend is no part of what it is: the same command with another budget goes on.
    if limits.without_limits(run.recipe) != limits.without_limits(complete) or run.depth != depth:
        raise name_taken_error(collection, name)
    if run.recipe != complete and run.state != JobState.READY:
        limits.set_limits(run, budget=complete.get("budget"), max_calls=complete.get("max_calls"))
    go_on(run)
    return Run.objects.select_related("collection").get(pk=run.pk)


def check_name(collection: Collection, name: str) -> None:
    """Raises BadInput for a name that no run may have, or that one has."""
    try:
        RUN_NAME(name)
    except ValidationError as error:
        raise BadInput(_("Run %(name)s: %(why)s") % {"name": repr(name), "why": error.messages[0]}) from None
    if find_run(collection, name) is not None:
        raise name_taken_error(collection, name)


def name_taken_error(collection: Collection, name: str) -> BadInput:
    """The error for a name that stands already, to be raised."""
    values = {"collection": collection.name, "name": name}
    return BadInput(_("%(collection)s already has a run %(name)s: choose another name, or delete that run") % values)


def find_run(collection: Collection, name: str) -> Run | None:
    """The collection's run of this name, however far it is."""
    return Run.objects.select_related("collection").filter(collection=collection, name=name, is_deleted=False).first()


def estimate_cost(collection: Collection, kind: str, recipe: Mapping[str, Any]) -> Estimate | None:
    """Estimate the cost of a run; None where its system calls no model. Raises BadInput as `start` does."""
    module = maker_module(kind)
    found = getattr(module, "estimate", None)
    if found is None:
        return None
    # The depth of an estimate is any: it changes no call.
    return cast("Estimate | None", found(collection, _complete_recipe(collection, kind, recipe, DEPTH)))


def work_on_run(run: Run, shutting_down: Stopped) -> None:
    """Make a claimed run, until it is over or somebody else's, or waits again because this worker ends."""
    leases.perform(
        run,
        lambda lease: maker_module(run.kind).make(run, lease.progress, lease.should_stop),
        stopping=shutting_down,
        expected=QuorumError,
        last=lambda: ranking_progress(run),
    )


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


def ranking_progress(run: Run) -> dict[str, int]:
    """Return `done` and `total` of a run that nobody works on: ranked queries, and all."""
    total = len(rankings.current_queries(run.collection, run.recipe))
    return {"done": total - len(rankings.unranked_queries(run)), "total": total}


def cancel_run(run: Run) -> bool:
    """Cancel a run; finished queries stay, and `go_on` makes the rest. Returns False when it is over already."""
    return leases.cancel(run, **ranking_progress(run))


def go_on(run: Run) -> bool:
    """Make the rest of a cancelled or failed run. False in any other state."""
    went = leases.resume(run)
    if went:
        transaction.on_commit(lambda: notify(MAKE_RUN))
    return went


@transaction.atomic
def delete_run(run: Run) -> None:
    """Delete a run: it leaves every table and frees its name.

    Its rankings stay, since qrels and reports came from them.
    """
    leases.cancel(run)
    Run.objects.filter(pk=run.pk).update(is_deleted=True)
