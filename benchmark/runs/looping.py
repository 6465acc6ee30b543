"""The loop of makers that rank query by query: in batches, resumed where a worker was killed."""

from collections.abc import Callable
from time import monotonic

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from corpus.models import Query

STORE_S = 1.0
"""Seconds of work that a killed worker loses, at most."""


def each_query(
    run: Run, rank: Callable[[Query], RankedQuery], progress: Tell, stopped: Stopped, phase: str = ""
) -> None:
    """Rank every query that has no ranking yet, and store what there is every second."""
    waiting = rankings.unranked_queries(run)
    total = len(rankings.current_queries(run.collection))
    done, since = total - len(waiting), monotonic()
    batch: dict[int, RankedQuery] = {}
    progress(done, total, phase)
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
