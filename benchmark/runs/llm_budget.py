"""Parts that runs by models share: the judge, the batches, and the usage of each query."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Progress, ShouldStop
from benchmark.runs.rankings import RankedQuery
from corpus.models import Query
from judges.model_jobs.jobs import BatchOutcome, ask_in_batches, in_batches
from judges.records import Judge, Turn
from judges.retrieval import model_requests
from judges.retrieval.model_requests import RetrievalReply, Used

SAMPLED = 50  # Queries whose prompts an estimate builds.
# Queries in a batch; after each batch the rankings are stored and the progress is updated.
BATCH = 64
# Returns the rankings of the answered queries, and the errors of the others.
Batch = Callable[[Sequence[Query]], tuple[Mapping[int, RankedQuery], RetrievalReply]]


def judge_of(role: str, recipe: Mapping[str, Any]) -> Judge:
    """Return the recipe's judge in its current version. Raises BadInput."""
    return model_requests.judge_for(role, str(recipe.get("judge", "")))


def rank_batches(
    run: Run, work: Batch, progress: Progress, should_stop: ShouldStop, phase: str = "", size: int = BATCH
) -> None:
    """Rank every query that has no ranking yet, and store the rankings batch by batch.

    Raises Incomplete when a limit is reached, when no model answers, and at the end when some
    queries got no answer: the stored rankings stay, and resuming the run asks for the others.
    """
    queries, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection, run.recipe))
    done = total - len(queries)

    def rank(batch: Sequence[Query]) -> BatchOutcome:
        nonlocal done
        ranked, reply = work(batch)
        rankings.store(run, ranked)
        done += len(ranked)
        progress(done, total, phase)
        return BatchOutcome(len(batch), len(ranked), reply.error, reply.spent, reply.stopped)

    progress(done, total, phase)
    ask_in_batches(run, should_stop, in_batches(queries, size), rank, total)


def answered_queries(reply: RetrievalReply, batch: Sequence[Query]) -> dict[int, tuple[Query, tuple[Turn, ...]]]:
    """Return the answered queries with their answers."""
    pairs = zip(batch, reply.answers, strict=True)
    return {query.pk: (query, turns) for query, turns in pairs if turns is not None}


def add_usage(ranked: RankedQuery, usage: Used | None, text: str = "") -> RankedQuery:
    """Add the seconds and tokens of the model calls to a ranking."""
    seconds, tokens_in, tokens_out = usage or (0.0, 0, 0)
    return replace(
        ranked,
        seconds=ranked.seconds if usage is None else (ranked.seconds or 0.0) + seconds,
        tokens_in=ranked.tokens_in + tokens_in,
        tokens_out=ranked.tokens_out + tokens_out,
        text=text,
    )
