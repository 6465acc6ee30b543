"""Planning of a hole filling: the contents of its pool and the cost of judging it."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _

from actions.services import Actor
from benchmark.hole_filling.options import FillingOptions, FillingPolicy
from benchmark.hole_filling.pairs import count_among, known_to_people
from benchmark.measures.pooling import JudgmentPool, pool_rankings
from benchmark.models import Qrels, Run
from benchmark.qrels import reading, versions
from benchmark.runs import rankings
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Document, Query
from jobs.models import JobState
from judges.campaigns import forecasts, lifecycle
from judges.campaigns.configurations import Configuration, configuration_of
from judges.campaigns.estimates import Estimate
from judges.campaigns.options import CampaignOptions
from judges.models import Work

PairKeys = Sequence[tuple[int, int]]  # Primary keys of queries and documents.
ENDED = (Work.State.LABELLED, Work.State.ESCALATED, Work.State.FAILED)  # States of pairs with an outcome.


def judging_configuration(options: FillingOptions) -> Configuration | None:
    """Return the configuration of the judges; None if people judge every pair. Raises BadInput."""
    if options.policy == FillingPolicy.PEOPLE:
        return None
    judging_options = options.model_dump(include={"panel", "rounds", "debaters", "filter", "adjudicator"})
    return configuration_of(CampaignOptions.read({**judging_options, "policy": options.policy}))


def named_runs(collection: Collection, options: FillingOptions) -> list[Run]:
    """Return the runs that the options name. Raises BadOption if one is missing or not ready."""
    rows = Run.objects.filter(collection=collection, is_deleted=False, name__in=options.runs)
    runs = {run.name: run for run in rows}
    for name in options.runs:
        if name not in runs:
            raise BadOption("runs", _("This collection has no run %(run)s.") % {"run": name})
        if runs[name].state != JobState.READY:
            raise BadOption("runs", _("Run %(run)s is not ready.") % {"run": name})
    return [runs[name] for name in dict.fromkeys(options.runs)]


def version_before(collection: Collection, options: FillingOptions, by: str) -> Qrels:
    """Return the version of the qrels to complete. Raises BadOption."""
    if options.qrels is None:
        return versions.original_version(collection, by)
    try:
        return versions.version_numbered(collection, options.qrels)
    except BadInput as error:
        raise BadOption("qrels", str(error)) from None


def pool_of(collection: Collection, runs: Sequence[Run], depth: int, before: Qrels) -> JudgmentPool:
    """Return the pool of finished runs."""
    return pool_rankings(rankings.load([run.pk for run in runs], depth), depth, reading.load(before))


class PoolCounts(TypedDict):
    """Counts of the queries and the pairs in the pool of a hole filling."""

    queries: int
    pool: int  # Pairs in the pool.
    judged: int  # Pairs that the qrels already contain.
    candidates: int  # Pairs that the qrels do not contain.
    known: int  # Candidates that people have already labelled.


class FillingEstimate(TypedDict):
    """The estimate of a hole filling, which is the context of the page that confirms its start."""

    preview: PoolCounts
    estimate: Estimate | None  # None if the judges have nothing to judge.
    people: bool  # Whether people judge every pair.


def preview_filling(collection: Collection, runs: Sequence[Run], depth: int, before: Qrels) -> PoolCounts:
    """Count the queries and the pairs in the pool of a hole filling."""
    pool = pool_of(collection, runs, depth, before)
    queries, documents = pool.candidates
    return {
        "queries": len(np.unique(pool.queries)),
        "pool": len(pool),
        "judged": int(pool.is_judged.sum()),
        "candidates": len(queries),
        "known": known_to_people(collection, queries, documents),
    }


def estimate_filling(actor: Actor, collection: Collection, options: FillingOptions) -> FillingEstimate:
    """Count the pairs of a hole filling and estimate its cost, without starting it. Raises BadOption and BadInput."""
    with transaction.atomic():
        runs, before = named_runs(collection, options), version_before(collection, options, actor.name)
        preview = preview_filling(collection, runs, options.depth, before)
        estimate = estimate_cost(collection, runs, before, options)
        # Undo the first version of the qrels, which `version_before` may have made.
        transaction.set_rollback(True)
    return {"preview": preview, "estimate": estimate, "people": options.policy == FillingPolicy.PEOPLE}


def estimate_cost(
    collection: Collection,
    runs: Sequence[Run],
    before: Qrels,
    options: FillingOptions,
    *,
    pairs: PairKeys | None = None,
) -> Estimate | None:
    """Estimate the calls and cost of the judges; None if there is nothing to judge. Raises BadInput.

    `pairs`: those that are judged, where these are not all unjudged ones of the pool.
    """
    configuration = judging_configuration(options)
    if pairs is None:
        queries, documents = pool_of(collection, runs, options.depth, before).candidates
    else:
        queries, documents = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    if configuration is None or not len(queries):
        return None
    campaigns = lifecycle.same_configuration(collection, configuration)
    judged = Work.objects.filter(campaign__in=campaigns, state__in=ENDED) if campaigns else Work.objects.none()
    remaining = len(queries) - known_to_people(collection, queries, documents)
    # Outcomes count across campaigns of one configuration, so that no pair is paid for twice (ADR 0034).
    remaining -= count_among(judged.values_list("pair__query_id", "pair__document_id"), queries, documents)
    remaining = remaining if options.first is None else min(remaining, options.first)
    if remaining <= 0:
        return None
    # The prompts of a sample that is spread evenly over the pool, since those of all pairs would take
    # too long to write. Unique, because a small pool may have fewer pairs than the sample.
    positions = np.unique(np.linspace(0, len(queries) - 1, forecasts.SAMPLE).astype(int))
    query_keys, document_keys = queries[positions].tolist(), documents[positions].tolist()
    query_rows, document_rows = Query.objects.in_bulk(query_keys), Document.objects.in_bulk(document_keys)
    inputs = [
        forecasts.pair_inputs(collection, query_rows[query], document_rows[document])
        for query, document in zip(query_keys, document_keys, strict=True)
        if query in query_rows and document in document_rows
    ]
    parts = [part for pair_input in inputs for part in forecasts.parts_of(collection, configuration, pair_input)]
    # Judges judge windows of a document: assume as many per pair as in the sample.
    return forecasts.estimate_pairs(configuration, round(remaining * len(parts) / max(1, len(inputs))), parts)
