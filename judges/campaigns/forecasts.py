"""Forecasts of what a start would cost, from a sample of the pairs that it would judge."""

from collections.abc import Sequence

from django.db.models import Max, Min

from corpus.evidence.measures import EvidenceTarget
from corpus.models import Collection, Document, Pair, Query
from judges.campaigns import lifecycle
from judges.campaigns.configurations import Configuration
from judges.campaigns.estimates import CampaignSize, Estimate, ballots_of, estimate_campaign
from judges.costs.token_mixes import mixes_of
from judges.domain.debate import FOR
from judges.engine.plan import raise_output_limit
from judges.evidence import campaigns as evidence
from judges.models import Campaign
from judges.prompts import render, writing
from judges.records import Inputs

SAMPLE = 50
DEBATED = (Campaign.Policy.DEBATE, Campaign.Policy.DEBATE_ENSEMBLE)


def forecast_judging(
    collection: Collection, wanted: Configuration, *, limit: int | None = None, again: bool = False
) -> Estimate | None:
    """Estimate what a start with this configuration has still to do; None when that is nothing."""
    left = lifecycle.pairs_to_judge(collection, wanted, limit=limit, again=again)
    return estimate_pairs(wanted, left, sample_inputs(collection)) if left else None


def estimate_pairs(wanted: Configuration, pairs: int, inputs: Sequence[Inputs]) -> Estimate:
    """Estimate the judging of so many pairs, some of which show `inputs` to judges."""
    options = CampaignSize(
        pairs=pairs,
        policy=wanted.policy,
        debaters=wanted.debaters if wanted.protocol.debate_for_people or wanted.policy in DEBATED else (),
        voters=wanted.voters,
        rounds=wanted.rounds,
        early_stop=wanted.early_stop,
        majority=wanted.majority,
        filters=wanted.filters,
        adjudicator=wanted.adjudicator,
        play_on=wanted.protocol.play_on,
        batch=wanted.protocol.batch,
        mixes=mixes_of(wanted.judges),
        ballots=ballots_of([*wanted.voters, *wanted.filters], inputs),
    )
    sample = [prompt for one in inputs for prompt in (render.turn_prompt(one, FOR, 1), render.vote_prompt(one))]
    return estimate_campaign(options, sample)


def forecast_writing(collection: Collection, wanted: Configuration, *, limit: int | None = None) -> Estimate | None:
    """Estimate the contribution and evidence of the relevant pairs that have none; None when all have."""
    missing = evidence.target_coverage(collection)["missing"]
    left = missing if limit is None else min(missing, limit)
    if not left:
        return None
    voters = [raise_output_limit(judge) for judge in wanted.voters]
    options = CampaignSize(pairs=left, policy="evidence", voters=voters, mixes=mixes_of(voters))
    target = EvidenceTarget("c" * 300, "e" * 700)  # texts of usual length
    sample = [writing.entity_prompt(target.evidence)]
    for inputs in sample_inputs(collection):
        sample += [writing.write_prompt(inputs), writing.measure_prompt(inputs, target)]
    return estimate_campaign(options, sample)


def sample_inputs(collection: Collection) -> list[Inputs]:
    """Return what judges are shown of a sample of pairs, spread over the collection."""
    candidates = Pair.objects.filter(collection=collection, is_candidate=True)
    pairs = candidates.select_related("query", "document").order_by("pk")
    ends = candidates.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        return []
    # Steps over keys, not offsets: an offset into a million pairs reads all that come before it.
    step = max(1, (ends["last"] - ends["first"]) // SAMPLE)
    spread = {pairs.filter(pk__gte=key).first() for key in range(ends["first"], ends["last"] + 1, step)}
    chosen = sorted(filter(None, spread), key=lambda pair: pair.pk)[:SAMPLE]
    return [pair_inputs(collection, pair.query, pair.document) for pair in chosen]


def pair_inputs(owner: Collection | Campaign, query: Query, document: Document) -> Inputs:
    """Return what a judge is shown of a pair. `owner` defines relevance: the collection now, a campaign as it began."""
    definition = owner.relevance.of(query)
    answers = tuple(query.answers)
    return Inputs(query.text, answers, document.title, document.text, definition, query.collection_id, document.pk)
