"""Planning of a hole filling: what its pool holds, and what judging would cost."""

from collections.abc import Sequence
from typing import Any

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

ENDED = (Work.State.LABELLED, Work.State.ESCALATED, Work.State.FAILED)  # A pair's outcome is known.


def judging_configuration(options: FillingOptions) -> Configuration | None:
    """Return the judges' configuration; None if people judge every pair. Raises BadInput."""
    if options.policy == FillingPolicy.PEOPLE:
        return None
    given = options.model_dump(include={"panel", "rounds", "debaters", "filter", "adjudicator"})
    return configuration_of(CampaignOptions.read({**given, "policy": options.policy}))


def named_runs(collection: Collection, options: FillingOptions) -> list[Run]:
    """Return the runs that the options name. Raises BadOption for one missing or not ready."""
    rows = Run.objects.filter(collection=collection, is_deleted=False, name__in=options.runs)
    runs = {run.name: run for run in rows}
    for name in options.runs:
        if name not in runs:
            raise BadOption("runs", _("This collection has no run %(run)s.") % {"run": name})
        if runs[name].state != JobState.READY:
            raise BadOption("runs", _("Run %(run)s is not ready.") % {"run": name})
    return [runs[name] for name in dict.fromkeys(options.runs)]


def version_before(collection: Collection, options: FillingOptions, by: str) -> Qrels:
    """Return the version of the qrels that is completed. Raises BadOption."""
    if options.qrels is None:
        return versions.original_version(collection, by)
    try:
        return versions.version_numbered(collection, options.qrels)
    except BadInput as error:
        raise BadOption("qrels", str(error)) from None


def pool_of(collection: Collection, runs: Sequence[Run], depth: int, before: Qrels) -> JudgmentPool:
    """Return the pool of finished runs."""
    return pool_rankings(rankings.load([run.pk for run in runs], depth), depth, reading.load(before))


def preview_filling(collection: Collection, runs: Sequence[Run], depth: int, before: Qrels) -> dict[str, int]:
    """The first steps of a filling's funnel, and the queries of its runs. Reads only."""
    found = pool_of(collection, runs, depth, before)
    queries, documents = found.candidates
    return {
        "queries": len(np.unique(found.queries)),
        "pool": len(found),
        "judged": int(found.is_judged.sum()),
        "candidates": len(queries),
        "known": known_to_people(collection, queries, documents),  # people labelled them: nobody is asked again
    }


def estimate_filling(actor: Actor, collection: Collection, options: FillingOptions) -> dict[str, Any]:
    """Count the pairs of a hole filling and estimate its cost; nothing starts. Raises BadOption and BadInput."""
    with transaction.atomic():
        runs, before = named_runs(collection, options), version_before(collection, options, actor.name)
        preview = preview_filling(collection, runs, options.depth, before)
        estimate = estimate_cost(collection, runs, before, options)
        # An estimate leaves no version of the qrels behind.
        transaction.set_rollback(True)
    return {"preview": preview, "estimate": estimate, "people": options.policy == FillingPolicy.PEOPLE}


def estimate_cost(
    collection: Collection, runs: Sequence[Run], before: Qrels, options: FillingOptions
) -> Estimate | None:
    """Calls and cost of the judges; None where there is nothing to do. Raises BadInput."""
    wanted = judging_configuration(options)
    queries, documents = pool_of(collection, runs, options.depth, before).candidates
    if wanted is None or not len(queries):
        return None
    known = lifecycle.same_configuration(collection, wanted)
    judged = Work.objects.filter(campaign__in=known, state__in=ENDED) if known else Work.objects.none()
    left = len(queries) - known_to_people(collection, queries, documents)
    # ADR 0034: outcomes count across campaigns of one configuration, so nobody pays for a pair twice.
    left -= count_among(judged.values_list("pair__query_id", "pair__document_id"), queries, documents)
    left = left if options.first is None else min(left, options.first)
    if left <= 0:
        return None
    # Prompts of a sample, spread evenly over the pool: those of all pairs would take too long to
    # write. unique, since a small pool has fewer pairs than the sample has places.
    at = np.unique(np.linspace(0, len(queries) - 1, forecasts.SAMPLE).astype(int))
    texts = Query.objects.in_bulk(queries[at].tolist()), Document.objects.in_bulk(documents[at].tolist())
    shown = [
        forecasts.pair_inputs(collection, texts[0][query], texts[1][document])
        for query, document in zip(queries[at].tolist(), documents[at].tolist(), strict=True)
        if query in texts[0] and document in texts[1]
    ]
    parts = [part for one in shown for part in forecasts.parts_of(collection, wanted, one)]
    # As many windows a pair as the sample has: what is judged are windows.
    return forecasts.estimate_pairs(wanted, round(left * len(parts) / max(1, len(shown))), parts)
