"""Parts that all makers share which ask models: the judge, the batches, what a query used."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from corpus.models import Query
from judges.model_jobs.jobs import BatchOutcome, ask_in_batches, in_batches
from judges.records import Judge, Turn
from judges.retrieval import model_requests
from judges.retrieval.model_requests import RetrievalReply, Used

SAMPLED = 50  # Queries whose prompts an estimate looks at.
# Queries that are asked about together; between two batches a run is stored and tells how far it is.
BATCH = 64
# Rankings of some queries, and what went wrong with those that it leaves out.
Batch = Callable[[Sequence[Query]], tuple[Mapping[int, RankedQuery], RetrievalReply]]


def judge_of(role: str, recipe: Mapping[str, Any]) -> Judge:
    """The recipe's judge in its present version. Raises BadInput."""
    return model_requests.judge_for(role, str(recipe.get("judge", "")))


def each_batch(run: Run, work: Batch, progress: Tell, stopped: Stopped, phase: str = "", size: int = BATCH) -> None:
    """Rank every query that has no ranking yet, and store what there is batch by batch.

    Raises Incomplete when the limits are reached, when nobody answers, and in the end when some
    queries got no answer: what there is stays, and going on asks for the rest.
    """
    waiting, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection, run.recipe))
    done = total - len(waiting)

    def rank(batch: Sequence[Query]) -> BatchOutcome:
        nonlocal done
        ranked, reply = work(batch)
        rankings.store(run, ranked)
        done += len(ranked)
        progress(done, total, phase)
        return BatchOutcome(len(batch), len(ranked), reply.error, reply.spent, reply.stopped)

    progress(done, total, phase)
    ask_in_batches(run, stopped, in_batches(waiting, size), rank, total)


def answered_queries(reply: RetrievalReply, batch: Sequence[Query]) -> dict[int, tuple[Query, tuple[Turn, ...]]]:
    """The queries that were answered, with their answers."""
    pairs = zip(batch, reply.answers, strict=True)
    return {query.pk: (query, turns) for query, turns in pairs if turns is not None}


def add_usage(ranked: RankedQuery, used: Used | None, text: str = "") -> RankedQuery:
    """Add the seconds and tokens of calls that came before the search."""
    seconds, tokens_in, tokens_out = used or (0.0, 0, 0)
    return replace(
        ranked,
        seconds=ranked.seconds if used is None else (ranked.seconds or 0.0) + seconds,
        tokens_in=ranked.tokens_in + tokens_in,
        tokens_out=ranked.tokens_out + tokens_out,
        text=text,
    )
