"""Planning of a hole filling: what its pool holds, and what judging would cost."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from benchmark.hole_filling.pairs import count_among, known_to_people
from benchmark.measures.pooling import JudgmentPool, pool_rankings
from benchmark.models import Qrels, Run
from benchmark.qrels import reading
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Collection, Document, Query
from jobs.models import JobState
from judges.campaigns import configurations, forecasts, lifecycle
from judges.campaigns.configurations import CampaignOptions, Configuration
from judges.campaigns.estimates import Estimate
from judges.models import Work

# The policy under which no judge is asked: an item for each pair, as many people as the collection asks.
PEOPLE = "people"
DEEPEST = 1_000
ENDED = (Work.State.LABELLED, Work.State.ESCALATED, Work.State.FAILED)  # A pair's outcome is known.


def judging_configuration(
    policy: str | None, panel: str | None, filters: Sequence[str] = (), debate: Mapping[str, Any] = MappingProxyType({})
) -> Configuration | None:
    """Return the configuration of the judges; None where people judge every pair. Raises BadInput.

    `debate`: rounds, debaters and adjudicator in place of the usual ones.
    """
    if policy == PEOPLE:
        if panel or filters or debate:
            raise BadInput(_("the policy people uses no models: remove the panel and the filter"))
        return None
    return configurations.build_configuration(
        panel=panel,
        policy=policy,
        rounds=debate.get("rounds"),
        debaters=debate.get("debaters", ()),
        options=CampaignOptions(filter=tuple(filters), adjudicator=debate.get("adjudicator", "")),
    )


def pool_of(collection: Collection, runs: Sequence[Run], depth: int, before: Qrels) -> JudgmentPool:
    """The pool of finished runs. Raises BadInput for others, for none, and for a depth that is none."""
    if not runs:
        raise BadInput(_("choose at least one run. The pool consists of the documents that the runs return"))
    for run in runs:
        if run.collection_id != collection.pk or run.is_deleted or run.state != JobState.READY:
            raise BadInput(_("run %(run)s is not ready or belongs to another collection") % {"run": run.name})
    if before.collection_id != collection.pk:
        raise BadInput(_("these qrels belong to another collection"))
    if not 1 <= depth <= DEEPEST:
        raise BadInput(_("depth %(depth)s: enter a number from 1 to %(most)s") % {"depth": depth, "most": DEEPEST})
    return pool_rankings(rankings.load([run.pk for run in runs], depth), depth, reading.load(before))


def preview_filling(collection: Collection, runs: Sequence[Run], depth: int, before: Qrels) -> dict[str, int]:
    """The first steps of the funnel of a filling, and the queries that its runs have. Reads only. Raises BadInput."""
    found = pool_of(collection, runs, depth, before)
    queries, documents = found.candidates
    return {
        "queries": len(np.unique(found.queries)),
        "pool": len(found),
        "judged": int(found.is_judged.sum()),
        "candidates": len(queries),
        "known": known_to_people(collection, queries, documents),  # people labelled them: nobody is asked again
    }


def estimate_cost(
    collection: Collection,
    runs: Sequence[Run],
    depth: int,
    before: Qrels,
    policy: str,
    panel: str | None = None,
    filters: Sequence[str] = (),
    debate: Mapping[str, Any] = MappingProxyType({}),
    most: int | None = None,
) -> Estimate | None:
    """Calls and cost of the judges for `most` pairs at most; None where there is nothing to do. Raises BadInput."""
    wanted = judging_configuration(policy, panel, filters, debate)
    queries, documents = pool_of(collection, runs, depth, before).candidates
    if wanted is None or not len(queries):
        return None
    known = lifecycle.same_configuration(collection, wanted)
    judged = Work.objects.filter(campaign__in=known, state__in=ENDED) if known else Work.objects.none()
    left = len(queries) - known_to_people(collection, queries, documents)
    # ADR 0034: outcomes count across campaigns of one configuration, so nobody pays for a pair twice.
    left -= count_among(judged.values_list("pair__query_id", "pair__document_id"), queries, documents)
    left = left if most is None else min(left, most)
    if left <= 0:
        return None
    # Prompts of a sample, spread evenly over the pool: those of all pairs would take too long to write.
    # unique, since a small pool has fewer pairs than the sample has places.
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
