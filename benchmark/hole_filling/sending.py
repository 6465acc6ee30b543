"""The pairs that could settle the order of the systems, most informative first, to people or to judges."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from benchmark import qrels
from benchmark.bounds import compute_bounds
from benchmark.hole_filling.planning import PEOPLE
from benchmark.hole_filling.starting import start_filling
from benchmark.models import Filling, Qrels, Run
from benchmark.report import reports
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Collection
from jobs.models import JobState


def send_pairs(
    *,
    collection: Collection,
    runs: Sequence[Run],
    before: Qrels,
    k: int,
    first: int,
    policy: str = PEOPLE,
    panel: str | None = None,
    filters: Sequence[str] = (),
    budget: float | None = None,
    max_calls: int | None = None,
    retry: bool = False,
    by: str = "",
) -> Filling:
    """A filling over the `first` so many pairs that could settle an order. People get them before all else, in order.

    Raises BadInput when every order is settled, or the number is none.
    """
    if first < 1:
        raise BadInput(_("%(first)s pairs: give a number from 1") % {"first": first})
    pairs = informative_pairs(collection, runs, before, k)[:first]
    if not pairs:
        raise BadInput(_("the order of these runs is settled: no unjudged pair of their pool could turn it"))
    return start_filling(
        collection=collection,
        runs=runs,
        depth=k,
        before=before,
        policy=policy,
        panel=panel,
        filters=filters,
        budget=budget,
        max_calls=max_calls,
        retry=retry,
        pairs=pairs,
        by=by,
    )


def informative_pairs(collection: Collection, runs: Sequence[Run], before: Qrels, k: int) -> list[tuple[int, int]]:
    """Query and document of each pair, from the report that is there already, else computed now."""
    report = reports.find_report(collection, before, before, runs, k)
    if report is not None and report.state == JobState.READY and report.result:
        return [(query, document) for query, document, _value in report.result["safety"]["first"]]
    loaded = rankings.load([run.pk for run in runs], k)
    found = compute_bounds(loaded, qrels.load(before), collection.grades, k)
    return [(one.query, one.document) for one in found.first]
