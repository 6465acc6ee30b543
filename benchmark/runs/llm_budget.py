"""Parts that all makers share which ask models: the judge, the keys of its recipe, the batches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput, Incomplete
from corpus.models import Query
from judges.model_jobs.jobs import BatchOutcome, ask_in_batches, describe_stop, in_batches
from judges.model_jobs.options import LIMITS
from judges.records import Judge, Turn
from judges.retrieval import model_requests
from judges.retrieval.model_requests import RetrievalReply, Used

SAMPLED = 50  # Queries whose prompts an estimate looks at.
# Queries that are asked about together; between two batches a run is stored and tells how far it is.
BATCH = 64


def judge_of(role: str, recipe: Mapping[str, Any]) -> Judge:
    """The recipe's judge in its present version. Raises BadInput."""
    return model_requests.judge_for(role, str(recipe.get("judge", "")))


def known_keys(recipe: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises BadInput for a key that no maker of this kind reads."""
    if unknown := sorted(recipe.keys() - {*known}):
        values = {"unknown": unknown[0], "known": ", ".join([*known, *LIMITS])}
        raise BadInput(_("The recipe contains unknown settings: %(unknown)s. Accepted settings: %(known)s") % values)


# Rankings of some queries, and what went wrong with those that it leaves out.
Batch = Callable[[Sequence[Query]], tuple[Mapping[int, RankedQuery], RetrievalReply]]


def each_batch(run: Run, work: Batch, progress: Tell, stopped: Stopped, phase: str = "", size: int = BATCH) -> None:
    """Rank every query that has no ranking yet, and store what there is batch by batch.

    Raises Incomplete when the limits are reached, when nobody answers, and in the end when some queries got no answer:
    what there is stays, and going on asks for the rest.
    """
    waiting, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection, run.recipe))
    done = total - len(waiting)

    def rank(batch: Sequence[Query]) -> BatchOutcome:
        nonlocal done
        ranked, found = work(batch)
        rankings.store(run, ranked)
        done += len(ranked)
        progress(done, total, phase)
        return BatchOutcome(len(batch), len(ranked), found.error, found.spent, found.stopped)

    progress(done, total, phase)
    ask_in_batches(run, stopped, in_batches(waiting, size), rank, total)


def answered_queries(found: RetrievalReply, batch: Sequence[Query]) -> dict[int, tuple[Query, tuple[Turn, ...]]]:
    """The queries that were answered, with their answers."""
    pairs = zip(batch, found.answers, strict=True)
    return {query.pk: (query, turns) for query, turns in pairs if turns is not None}


def add_usage(one: RankedQuery, used: Used | None, text: str = "") -> RankedQuery:
    """Add the seconds and tokens of calls that came before the search."""
    if used is None:
        return replace(one, text=text)
    seconds, tokens_in, tokens_out = used
    return replace(
        one,
        seconds=(one.seconds or 0.0) + seconds,
        tokens_in=one.tokens_in + tokens_in,
        tokens_out=one.tokens_out + tokens_out,
        text=text,
    )


def check_reply(run: Run, found: RetrievalReply, *, answered: bool) -> None:
    """Raises Incomplete when the limits are reached, or when not one of a batch was answered."""
    if found.spent:
        raise describe_stop(run, found.spent)
    if not answered:
        raise Incomplete(_("The model does not respond: %(error)s") % {"error": found.error})
