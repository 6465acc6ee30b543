"""Services of hole filling: start one, or go on with an equal one (DREAM 4.1).

A filling is the pool of some runs with what the qrels know taken away. Judges are asked in a
campaign over exactly these pairs, people about what is escalated, or about all. A large one is
prepared by a worker: some hundred thousand pairs take longer to write than a page may.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from actions.services import Actor, Unchanged, action
from benchmark.bounds.order import compute_bounds
from benchmark.hole_filling import stages
from benchmark.hole_filling.funnel import Funnel, compute_funnel
from benchmark.hole_filling.options import FillingOptions, FillingPolicy
from benchmark.hole_filling.pairs import Integers, open_tasks, pairs_of, without_final
from benchmark.hole_filling.planning import judging_configuration, named_runs, pool_of, version_before
from benchmark.hole_filling.stages import (
    UNFINISHED,
    advance_filling,
    claim_and_act,
    due_fillings,
    finish_requested,
    is_current,
    scope_of,
    store_funnel,
)
from benchmark.models import Filling, Qrels, Run
from benchmark.qrels import reading
from benchmark.report import reports
from benchmark.runs import rankings
from corpus.errors import BadOption
from corpus.holding import hold
from corpus.models import Collection
from jobs.models import JobState
from judges.campaigns import lifecycle
from judges.campaigns.configurations import Configuration

State = Filling.State
AT_ONCE = 20_000  # Pairs up to which a page waits for the start.
IN_COLUMNS = {"runs", "depth", "qrels"}  # Options that a filling keeps in columns of its own.


@dataclass(frozen=True, slots=True)
class _Wish:
    """A request for a filling, with the rows that its options name."""

    collection: Collection
    options: FillingOptions
    runs: Sequence[Run]
    before: Qrels
    wanted: Configuration | None  # None: people judge every pair.
    by: str

    @property
    def facts(self) -> dict[str, Any]:
        """The columns of a filling that do not depend on how far it is."""
        about = {"collection": self.collection, "depth": self.options.depth, "before": self.before}
        return {**about, "options": self.options.model_dump(mode="json", exclude=IN_COLUMNS)}


@action("filling.started", key="filling")
def start_filling(actor: Actor, collection: Collection, options: FillingOptions) -> Filling:
    """Have the unjudged pairs of a pool judged (DREAM 4.1). The same again goes on with what is unfinished.

    1. pool the runs and take away what the qrels know, 2. with `first`, keep the pairs that could settle an order,
    3. start a campaign over the rest, or ask people. A large one is left to a worker. A filled one of which nothing
    changed since is returned as it is. Raises BadOption and BadInput.
    """
    # Two equal starts at once would make two fillings: the second waits here, and finds the first.
    hold(Collection.objects, collection.pk, no_key=True)
    wish = _find_rows(collection, options, actor.name)
    if wish.wanted is not None:
        lifecycle.check_budget(collection, wish.wanted, options.budget, options.max_calls, None)
    queries, documents, begun = _unjudged_pairs(wish)
    if len(queries) > AT_ONCE:
        waiting = Filling.objects.filter(state=State.PREPARING, **wish.facts).defer("pairs")
        same = next((filling for filling in waiting if _has_runs(filling, wish.runs)), None)
        return same or _create_filling(wish, state=State.PREPARING, funnel=begun.document)
    return _begin_filling(wish, queries, documents, begun)


@action("filling.ended", noted=lambda _options, filling: {"filling": filling.number, "what": "finish"})
def finish_filling(actor: Actor, filling: Filling) -> Filling | Unchanged:
    """Make the filled version of what is settled by now (a large one by a worker)."""
    is_new = stages.ask_to_finish(filling, by=actor.name)
    filling.refresh_from_db()
    return filling if is_new else Unchanged(filling)  # Who asks for it once more ends nothing.


@action("filling.ended", noted=lambda _options, filling: {"filling": filling.number, "what": "cancel"})
def cancel_filling(actor: Actor, filling: Filling) -> Filling:
    """Cancel a filling. What was judged stays, and counts when it is started again."""
    stages.cancel_filling(filling)
    return filling


ACTS: dict[str, Callable[[Actor, Filling], Any]] = {"finish": finish_filling, "cancel": cancel_filling}


def _find_rows(collection: Collection, options: FillingOptions, by: str) -> _Wish:
    """Return the wish with the rows that the options name, and the policy of an empty one."""
    runs, before = named_runs(collection, options), version_before(collection, options, by)
    wanted = judging_configuration(options)
    if wanted is not None:
        options = options.model_copy(update={"policy": FillingPolicy(wanted.policy)})
    return _Wish(collection, options, runs, before, wanted, by)


def _unjudged_pairs(wish: _Wish) -> tuple[Integers, Integers, Funnel]:
    """The pool's unjudged pairs, or the first of them, and the funnel before anybody is asked."""
    depth, first = wish.options.depth, wish.options.first
    pool = pool_of(wish.collection, wish.runs, depth, wish.before)
    queries, documents = pool.candidates
    if first is not None:
        # People get the pairs in this order.
        chosen = informative_pairs(wish.collection, wish.runs, wish.before, depth)[:first]
        if not chosen:
            raise BadOption("first", _("No unjudged pair in the pool could change the order of these runs."))
        queries, documents = np.array(chosen, dtype=np.int64).reshape(-1, 2).T
    if not len(queries):
        raise BadOption(
            "runs",
            _("Nothing to judge: version %(number)s of the qrels already contains every pair in the pool.")
            % {"number": wish.before.number},
        )
    return queries, documents, Funnel.begun(len(pool), int(pool.is_judged.sum()), len(queries), known=0)


def _create_filling(wish: _Wish, **values: Any) -> Filling:
    filling = Filling.objects.create(made_by=wish.by, **wish.facts, **values)
    filling.runs.set(wish.runs)
    return filling


def _begin_filling(
    wish: _Wish, queries: Integers, documents: Integers, begun: Funnel, own: Filling | None = None
) -> Filling:
    """Write the pairs and ask about them. `own`: the filling that waited for a worker to do so."""
    ids = pairs_of(wish.collection, queries, documents)
    # Rankings keep the versions of the texts that they were made of (ADR 0032): without a current
    # pair nobody could be asked, and a filling of nothing would be done and never filled.
    if not ids:
        told = _("Documents in run %(name)s have since changed or been removed: create or import it again.")
        raise BadOption("runs", told % {"name": ", ".join(run.name for run in wish.runs)})
    own = own or _find_same(wish, ids)
    # What is filled, or about to be, is only shown again.
    if own is not None and own.state in (State.FILLED, State.FINISHING):
        return own
    # What people said is final: judges are not asked about it again.
    asked = without_final(ids)
    if own is None:
        own = _create_filling(wish)
    # Written once: a filling that goes on keeps the pairs it began with.
    if own.state == State.PREPARING or not own.pairs:
        funnel = replace(begun, candidates=len(ids), known=len(ids) - len(asked))
        own.pairs, own.state, own.funnel, own.error = ids, State.JUDGING, funnel.document, ""
        own.save(update_fields=["pairs", "state", "funnel", "error"])
    _ask_judges(wish, own, asked)
    return store_funnel(own)


def _ask_judges(wish: _Wish, filling: Filling, asked: Sequence[int]) -> None:
    """Ask judges in a campaign over exactly these pairs, or people about each."""
    if wish.wanted is None:
        open_tasks(wish.collection, asked, in_order=wish.options.first is not None)
        return
    limits = wish.options.model_dump(include={"budget", "max_calls", "failed_to_people"})
    about: dict[str, Any] = {"collection": wish.collection, "wanted": wish.wanted, "scope": scope_of(filling)}
    started = lifecycle.start_campaign(**about, **limits, retry=wish.options.retry_failed, pairs=asked)
    # Where every pair has its outcome no campaign is started: the newest alike is the one that judged them.
    campaign = started.campaign or next(iter(lifecycle.same_configuration(wish.collection, wish.wanted)), None)
    filling.campaign = campaign.pk if campaign else None
    filling.save(update_fields=["campaign"])


def _find_same(wish: _Wish, ids: Sequence[int]) -> Filling | None:
    """The newest filling of the same pairs by the same policy that goes on, or that is filled and up to date."""
    found = Filling.objects.filter(collection=wish.collection, depth=wish.options.depth, before=wish.before)
    found = found.filter(state__in=(*UNFINISHED, State.FINISHING, State.FILLED))
    if wish.wanted is None:
        found = found.filter(campaign=None, options__policy=FillingPolicy.PEOPLE)
    else:
        known = [one.pk for one in lifecycle.same_configuration(wish.collection, wish.wanted)]
        found = found.filter(campaign__in=known)
    for filling in found.select_related("collection", "before", "after").order_by("-pk"):
        # The arrays are compared at last: they are long.
        if _has_runs(filling, wish.runs) and filling.pairs == list(ids):
            if filling.state != State.FILLED:
                return filling
            return filling if compute_funnel(filling).is_done and is_current(filling) else None
    return None


def _has_runs(filling: Filling, runs: Sequence[Run]) -> bool:
    return set(filling.runs.values_list("pk", flat=True)) == {run.pk for run in runs}


def prepare_filling(key: int) -> bool:
    """Write the pairs of a filling that waits for it. What cannot be started any more is cancelled and says why."""

    def prepare(filling: Filling) -> None:
        runs = list(filling.runs.order_by("pk").values_list("name", flat=True))
        given = {"runs": runs, "depth": filling.depth, "qrels": filling.before.number, **filling.options}
        wish = _find_rows(filling.collection, FillingOptions.read(given), filling.made_by)
        _begin_filling(wish, *_unjudged_pairs(wish), own=filling)

    # Anything else than bad input is tried again; the filling's page says what it was.
    return claim_and_act(key, State.PREPARING, prepare, {"state": State.CANCELLED, "ended_at": Now()}, {})


def informative_pairs(collection: Collection, runs: Sequence[Run], before: Qrels, k: int) -> list[tuple[int, int]]:
    """Query and document of each pair, from the report that is there already, else computed now."""
    report = reports.find_report(collection, before, before, runs, k)
    if report is not None and report.state == JobState.READY and report.result:
        return [(query, document) for query, document, _value in report.result["safety"]["first"]]
    loaded = rankings.load([run.pk for run in runs], k)
    found = compute_bounds(loaded, reading.load(before), collection.grades, k)
    return [(query, document) for query, document, _value in found["first"]]


def advance_due() -> None:
    """Prepare and finish waiting fillings, and look at those not looked at for a while."""
    failed: list[Exception] = []
    for state, act in ((Filling.State.PREPARING, prepare_filling), (Filling.State.FINISHING, finish_requested)):
        for key in list(Filling.objects.filter(state=state).order_by("pk").values_list("pk", flat=True)):
            try:
                act(key)
            except Exception as error:
                failed.append(error)
    for filling in due_fillings():
        # One that cannot go on holds up no other: the rest would not be due again for a while.
        try:
            advance_filling(filling)
        except Exception as error:
            failed.append(error)
    if failed:
        raise ExceptionGroup("fillings that could not go on", failed)
