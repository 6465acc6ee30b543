"""Services of hole filling: start a filling, or resume an equal one (DREAM 4.1).

A filling judges the pairs in the pool of some runs that the qrels do not contain. A campaign asks
judges about exactly these pairs, and people judge what is escalated, or every pair. A worker
prepares a large filling, since writing some hundred thousand pairs takes too long for a page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db import connection
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from actions.services import Actor, Unchanged, action
from benchmark.bounds.order import compute_bounds
from benchmark.hole_filling import stages
from benchmark.hole_filling.funnel import Funnel, compute_funnel
from benchmark.hole_filling.options import FillingOptions, FillingPolicy
from benchmark.hole_filling.pairs import FINAL, Integers, open_tasks, pairs_of
from benchmark.hole_filling.planning import PairKeys, judging_configuration, named_runs, pool_of, version_before
from benchmark.hole_filling.stages import (
    UNFINISHED,
    advance_filling,
    claim_and_act,
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
from corpus.models import Collection, Label
from jobs.models import JobState
from judges.campaigns import lifecycle
from judges.campaigns.configurations import Configuration

State = Filling.State
AT_ONCE = 20_000  # Fillings of up to so many pairs start at once, larger ones in a worker.
IN_COLUMNS = {"runs", "depth", "qrels"}  # Options that have their own columns.


@dataclass(frozen=True, slots=True)
class _FillingRequest:
    """A request for a filling, with the rows that its options name."""

    collection: Collection
    options: FillingOptions
    runs: Sequence[Run]
    before: Qrels
    configuration: Configuration | None  # None: people judge every pair.
    by: str

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the filling that do not change with its progress."""
        return {
            "collection": self.collection,
            "depth": self.options.depth,
            "before": self.before,
            "options": self.options.model_dump(mode="json", exclude=IN_COLUMNS),
        }


@action("filling.started", key="filling")
def start_filling(
    actor: Actor, collection: Collection, options: FillingOptions, *, pairs: PairKeys | None = None
) -> Filling:
    """Have the unjudged pairs of a pool judged (DREAM 4.1), or resume an equal filling that is unfinished.

    1. Pool the runs and remove the pairs in the qrels.
    2. With `first`, keep the pairs that could change the order of the runs most; with `pairs`, keep these.
    3. Start a campaign over these pairs, or ask people; a large filling is left to a worker.

    A filled filling is returned unchanged if nothing changed since. Raises BadOption and BadInput.
    """
    # Two equal starts at once would make two fillings: the second waits here, and finds the first.
    hold(Collection.objects, collection.pk, no_key=True)
    filling_request = _find_rows(collection, options, actor.name)
    if filling_request.configuration is not None:
        lifecycle.check_budget(collection, filling_request.configuration, options.budget, options.max_calls, None)
    queries, documents, funnel = _unjudged_pairs(filling_request, pairs)
    # A worker would not know of `pairs`.
    if len(queries) > AT_ONCE and pairs is None:
        rows = Filling.objects.filter(state=State.PREPARING, **filling_request.columns).defer("pairs")
        same_filling = next((filling for filling in rows if _has_runs(filling, filling_request.runs)), None)
        return same_filling or _create_filling(filling_request, state=State.PREPARING, funnel=funnel.document)
    return _begin_filling(filling_request, queries, documents, funnel)


@action("filling.ended", noted=lambda _options, filling: {"filling": filling.number, "what": "finish"})
def finish_filling(actor: Actor, filling: Filling) -> Filling | Unchanged:
    """Make the filled version of what is settled by now (a large one by a worker)."""
    is_new = stages.ask_to_finish(filling, by=actor.name)
    filling.refresh_from_db()
    return filling if is_new else Unchanged(filling)


@action("filling.ended", noted=lambda _options, filling: {"filling": filling.number, "what": "cancel"})
def cancel_filling(actor: Actor, filling: Filling) -> Filling:
    """Cancel a filling. What was judged stays, and counts when it is started again."""
    stages.cancel_filling(filling)
    return filling


# By the name of the action in the URL.
FILLING_ACTIONS: dict[str, Callable[[Actor, Filling], Any]] = {"finish": finish_filling, "cancel": cancel_filling}


def _find_rows(collection: Collection, options: FillingOptions, by: str) -> _FillingRequest:
    """Look up the rows that the options name, and complete an empty policy."""
    runs, before = named_runs(collection, options), version_before(collection, options, by)
    configuration = judging_configuration(options)
    if configuration is not None:
        options = options.model_copy(update={"policy": FillingPolicy(configuration.policy)})
    return _FillingRequest(collection, options, runs, before, configuration, by)


def _unjudged_pairs(request: _FillingRequest, pairs: PairKeys | None = None) -> tuple[Integers, Integers, Funnel]:
    """Return the unjudged pairs of the pool, or the first of them, or `pairs`, and the funnel at the start."""
    depth, first = request.options.depth, request.options.first
    pool = pool_of(request.collection, request.runs, depth, request.before)
    queries, documents = pool.candidates
    if first is not None:
        # In the order in which people get them.
        pairs = informative_pairs(request.collection, request.runs, request.before, depth)[:first]
        if not pairs:
            raise BadOption("first", _("No unjudged pair in the pool could change the order of these runs."))
    if pairs is not None:
        queries, documents = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    if not len(queries):
        raise BadOption(
            "runs",
            _("Nothing to judge: version %(number)s of the qrels already contains every pair in the pool.")
            % {"number": request.before.number},
        )
    return queries, documents, Funnel.begun(len(pool), int(pool.is_judged.sum()), len(queries), people_labelled=0)


def _create_filling(request: _FillingRequest, **values: Any) -> Filling:
    filling = Filling.objects.create(made_by=request.by, **request.columns, **values)
    filling.runs.set(request.runs)
    return filling


def _begin_filling(
    request: _FillingRequest,
    queries: Integers,
    documents: Integers,
    start_funnel: Funnel,
    filling: Filling | None = None,
) -> Filling:
    """Write the pairs and ask about them; `filling`: the one that waited for a worker, if any."""
    ids = pairs_of(request.collection, queries, documents)
    # Rankings refer to the versions of the texts that they were made of (ADR 0032). Without any
    # current pair, the filling would have nothing to judge and never end.
    if not ids:
        message = _("Documents in run %(name)s have since changed or been removed: create or import it again.")
        raise BadOption("runs", message % {"name": ", ".join(run.name for run in request.runs)})
    filling = filling or _find_same(request, ids)
    # A filling that is filled, or about to be, stays as it is.
    if filling is not None and filling.state in (State.FILLED, State.FINISHING):
        return filling
    # Labels of people and adjudicators are final: judges are not asked about these pairs.
    labels = Label.objects.filter(pair__in=list(ids), aspect=None, origin__in=FINAL)
    labelled_pairs = set(labels.values_list("pair_id", flat=True))
    unlabelled_pairs = [pair for pair in ids if pair not in labelled_pairs]
    if filling is None:
        filling = _create_filling(request)
    # Written once: a resumed filling keeps the pairs it started with.
    if filling.state == State.PREPARING or not filling.pairs:
        funnel = replace(start_funnel, candidates=len(ids), known=len(ids) - len(unlabelled_pairs))
        filling.pairs, filling.state, filling.funnel, filling.error = ids, State.JUDGING, funnel.document, ""
        filling.save(update_fields=["pairs", "state", "funnel", "error"])
    if request.configuration is None:
        open_tasks(request.collection, unlabelled_pairs, in_order=request.options.first is not None)
        return store_funnel(filling)
    limits = request.options.model_dump(include={"budget", "max_calls", "failed_to_people"})
    outcome = lifecycle.start_campaign(
        collection=request.collection,
        configuration=request.configuration,
        scope=scope_of(filling),
        **limits,
        retry=request.options.retry_failed,
        pairs=unlabelled_pairs,
    )
    # No campaign starts if every pair has its outcome: the newest one of this configuration judged them.
    campaigns = lifecycle.same_configuration(request.collection, request.configuration)
    campaign = outcome.campaign or next(iter(campaigns), None)
    filling.campaign = campaign.pk if campaign else None
    filling.save(update_fields=["campaign"])
    return store_funnel(filling)


def _find_same(request: _FillingRequest, ids: Sequence[int]) -> Filling | None:
    """Return the newest filling of the same pairs by the same policy that is unfinished, or filled and up to date."""
    rows = Filling.objects.filter(collection=request.collection, depth=request.options.depth, before=request.before)
    rows = rows.filter(state__in=(*UNFINISHED, State.FINISHING, State.FILLED))
    if request.configuration is None:
        rows = rows.filter(campaign=None, options__policy=FillingPolicy.PEOPLE)
    else:
        campaigns = [
            campaign.pk for campaign in lifecycle.same_configuration(request.collection, request.configuration)
        ]
        rows = rows.filter(campaign__in=campaigns)
    for filling in rows.select_related("collection", "before", "after").order_by("-pk"):
        # The arrays are compared last, because they are long.
        if _has_runs(filling, request.runs) and filling.pairs == list(ids):
            if filling.state != State.FILLED:
                return filling
            return filling if compute_funnel(filling).is_done and is_current(filling) else None
    return None


def _has_runs(filling: Filling, runs: Sequence[Run]) -> bool:
    return set(filling.runs.values_list("pk", flat=True)) == {run.pk for run in runs}


def prepare_filling(key: int) -> bool:
    """Start a filling that waits for a worker; one that can no longer be started is cancelled with the reason.

    Return whether this worker did so.
    """

    def prepare(filling: Filling) -> None:
        runs = list(filling.runs.order_by("pk").values_list("name", flat=True))
        values = {"runs": runs, "depth": filling.depth, "qrels": filling.before.number, **filling.options}
        request = _find_rows(filling.collection, FillingOptions.read(values), filling.made_by)
        _begin_filling(request, *_unjudged_pairs(request), filling=filling)

    # After bad input the filling is cancelled; after any other error it is tried again, and its page shows the error.
    return claim_and_act(key, State.PREPARING, prepare, {"state": State.CANCELLED, "ended_at": Now()}, {})


def informative_pairs(collection: Collection, runs: Sequence[Run], before: Qrels, k: int) -> list[tuple[int, int]]:
    """Return the pairs (query, document) by informativeness, from a stored report if there is one."""
    report = reports.find_report(collection, before, before, runs, k)
    if report is not None and report.state == JobState.READY and report.result:
        return [(query, document) for query, document, _value in report.result["safety"]["first"]]
    loaded = rankings.load([run.pk for run in runs], k)
    bounds = compute_bounds(loaded, reading.load(before), collection.grades, k)
    return [(query, document) for query, document, _value in bounds["first"]]


def advance_due() -> None:
    """Prepare and finish the fillings that wait for a worker, and advance those that are due."""
    errors: list[Exception] = []
    for state, act in ((Filling.State.PREPARING, prepare_filling), (Filling.State.FINISHING, finish_requested)):
        for key in list(Filling.objects.filter(state=state).order_by("pk").values_list("pk", flat=True)):
            try:
                act(key)
            except Exception as error:
                errors.append(error)
    # The fillings that were not counted for a while; larger ones are due less often.
    with connection.cursor() as cursor:
        cursor.execute(stages.DUE, {"least": stages.LOOK_S, "pace": stages.PAIRS_A_SECOND})
        keys = [key for (key,) in cursor.fetchall()]
    rows = Filling.objects.filter(pk__in=keys, state__in=stages.UNFINISHED).select_related("collection").defer("pairs")
    for filling in list(rows.order_by("pk")):
        # An error must not delay the other fillings, which would not be due again for a while.
        try:
            advance_filling(filling)
        except Exception as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("fillings that could not go on", errors)
