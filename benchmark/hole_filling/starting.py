"""Starting a filling, or going on with an equal one (DREAM 4.1).

A filling is the pool of some runs with what the qrels know taken away. Judges are asked in a campaign over exactly
these pairs, people about what is escalated, or about all. A large one is prepared by a worker: some hundred thousand
pairs take longer to write than a page may.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from benchmark.bounds.order import compute_bounds
from benchmark.hole_filling.funnel import Funnel, compute_funnel
from benchmark.hole_filling.pairs import Integers, open_tasks, pairs_of, without_final
from benchmark.hole_filling.planning import PEOPLE, judging_configuration, pool_of
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
from benchmark.qrels import reading, versions
from benchmark.report import reports
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection
from jobs.models import JobState
from judges.campaigns import lifecycle
from judges.campaigns.configurations import Configuration

State = Filling.State
Pairs = Sequence[tuple[int, int]]  # Query and document by primary key.
AT_ONCE = 20_000  # Pairs up to which a page waits for the start.


@dataclass(frozen=True, slots=True)
class _Wish:
    """A request for a filling: what is to be filled, and by whom."""

    collection: Collection
    runs: Sequence[Run]
    depth: int
    before: Qrels
    wanted: Configuration | None  # None: people judge every pair.
    options: dict[str, Any]
    by: str
    retry: bool = False  # Its failed pairs are judged again.

    @property
    def facts(self) -> dict[str, Any]:
        """The columns of a filling that do not depend on how far it is."""
        return {"collection": self.collection, "depth": self.depth, "before": self.before, "options": self.options}


def start_filling(
    *,
    collection: Collection,
    runs: Sequence[Run],
    depth: int,
    before: Qrels | None = None,
    policy: str | None = None,
    panel: str | None = None,
    filters: Sequence[str] = (),
    debate: Mapping[str, Any] = MappingProxyType({}),
    budget: float | None = None,
    max_calls: int | None = None,
    failed_to_people: bool = False,
    retry: bool = False,
    pairs: Pairs | None = None,
    later: bool = False,
    by: str = "",
) -> Filling:
    """Fill `before` (the original where none is given) from the pool of the runs; or go on with an equal filling.

    `policy` "people": an item for each pair and no campaign; None: all that the panel's members can do. `pairs`: only
    these of the pool, in this order, and people get them before everything else. `debate`: as `judging_configuration`
    takes it. `later`: a worker prepares a large
    one. The same call again goes on with the unfinished filling, with new limits, and with `retry` judges its failed
    pairs again; a filled one of which nothing changed since is returned as it is. Raises BadInput.
    """
    wanted = judging_configuration(policy, panel, filters, debate)
    policy = policy if wanted is None else wanted.policy
    if wanted is not None:
        lifecycle.check_budget(collection, wanted, budget, max_calls, None)
    limits = {"budget": budget, "max_calls": max_calls, "failed_to_people": failed_to_people}
    first = None if pairs is None else len(pairs)
    options: dict[str, Any] = {
        "policy": policy,
        "panel": panel or "",
        "filters": list(filters),
        "first": first,
        **limits,
    }
    options |= {"debate": dict(debate)} if debate else {}
    with transaction.atomic():
        before = before or versions.original_version(collection, by)
        # Two equal starts at once would make two fillings: the second waits here, and finds the first.
        hold(Collection.objects, collection.pk, no_key=True)
        wish = _Wish(collection, runs, depth, before, wanted, options, by, retry)
        queries, documents, begun = _unjudged_pairs(wish, pairs)
        if later and len(queries) > AT_ONCE:
            waiting = Filling.objects.filter(state=State.PREPARING, **wish.facts).defer("pairs")
            same = next((filling for filling in waiting if _has_runs(filling, wish.runs)), None)
            return same or _create_filling(wish, state=State.PREPARING, funnel=begun.document)
        return _begin_filling(wish, queries, documents, begun)


def _unjudged_pairs(wish: _Wish, pairs: Pairs | None) -> tuple[Integers, Integers, Funnel]:
    """The unjudged pairs of the pool, or those chosen from it, and the funnel before anybody is asked."""
    pool = pool_of(wish.collection, wish.runs, wish.depth, wish.before)
    queries, documents = pool.candidates
    if pairs is not None:
        unjudged = set(zip(queries.tolist(), documents.tolist(), strict=True))
        # The order given is the order in which people get the pairs; dict keys keep it.
        chosen = [pair for pair in dict.fromkeys(pairs) if pair in unjudged]
        queries, documents = np.array(chosen, dtype=np.int64).reshape(-1, 2).T
    if not len(queries):
        raise BadInput(
            _("nothing to judge: version %(number)s of the qrels already contains every pair in the pool")
            % {"number": wish.before.number}
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
    # Rankings keep the versions of the texts that they were made of (ADR 0032): without a current pair nobody could be
    # asked, and a filling of nothing would be done and never filled.
    if not ids:
        told = _("documents in run %(name)s have since changed or been removed: create or import it again")
        raise BadInput(told % {"name": ", ".join(run.name for run in wish.runs)})
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
        open_tasks(wish.collection, asked, in_order=wish.options["first"] is not None)
        return
    limits = {name: wish.options[name] for name in ("budget", "max_calls", "failed_to_people")}
    about: dict[str, Any] = {"collection": wish.collection, "wanted": wish.wanted, "scope": scope_of(filling)}
    started = lifecycle.start_or_join(**about, **limits, retry=wish.retry, pairs=asked)
    # Where every pair has its outcome no campaign is started: the newest alike is the one that judged them.
    campaign = started.campaign or next(iter(lifecycle.same_configuration(wish.collection, wish.wanted)), None)
    filling.campaign = campaign.pk if campaign else None
    filling.save(update_fields=["campaign"])


def _find_same(wish: _Wish, ids: Sequence[int]) -> Filling | None:
    """The newest filling of the same pairs by the same policy that goes on, or that is filled and up to date."""
    found = Filling.objects.filter(collection=wish.collection, depth=wish.depth, before=wish.before)
    found = found.filter(state__in=(*UNFINISHED, State.FINISHING, State.FILLED))
    if wish.wanted is None:
        found = found.filter(campaign=None, options__policy=wish.options["policy"])
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
        given = filling.options
        wanted = judging_configuration(
            given["policy"], given["panel"] or None, given["filters"], given.get("debate", {})
        )
        runs = list(filling.runs.order_by("pk"))
        wish = _Wish(filling.collection, runs, filling.depth, filling.before, wanted, given, filling.made_by)
        _begin_filling(wish, *_unjudged_pairs(wish, None), own=filling)

    # Anything else than bad input is tried again; the filling's page says what it was.
    return claim_and_act(key, State.PREPARING, prepare, {"state": State.CANCELLED, "ended_at": Now()}, {})


def send_pairs(
    *,
    collection: Collection,
    runs: Sequence[Run],
    before: Qrels,
    k: int,
    first: int,
    policy: str = PEOPLE,
    **asking: Any,
) -> Filling:
    """A filling over the `first` so many pairs that could settle an order. People get them before all else, in order.

    `asking`: panel, filters, debate, limits and `by`, as `start_filling` takes them. Raises BadInput when every order
    is settled, or the number is none.
    """
    if first < 1:
        raise BadInput(_("%(first)s pairs: enter a number of at least 1") % {"first": first})
    pairs = informative_pairs(collection, runs, before, k)[:first]
    if not pairs:
        raise BadInput(_("no unjudged pair in the pool could change the order of these runs"))
    about: dict[str, Any] = {"collection": collection, "runs": runs, "depth": k, "before": before}
    return start_filling(**about, policy=policy, pairs=pairs, **asking)


def informative_pairs(collection: Collection, runs: Sequence[Run], before: Qrels, k: int) -> list[tuple[int, int]]:
    """Query and document of each pair, from the report that is there already, else computed now."""
    report = reports.find_report(collection, before, before, runs, k)
    if report is not None and report.state == JobState.READY and report.result:
        return [(query, document) for query, document, _value in report.result["safety"]["first"]]
    loaded = rankings.load([run.pk for run in runs], k)
    found = compute_bounds(loaded, reading.load(before), collection.grades, k)
    return [(query, document) for query, document, _value in found["first"]]


def advance_due() -> None:
    """Prepare and finish what waits for it, and look at fillings that nobody looked at for a while."""
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
