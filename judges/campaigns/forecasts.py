"""Forecasts of a campaign's cost before its start, from a sample of the pairs that it would judge."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from django.db.models import Max, Min
from django.utils.translation import ngettext

from corpus.document_limit import SHOWN, WHOLE
from corpus.evidence.measures import EvidenceTarget
from corpus.long_documents import count_long_pairs, count_windows
from corpus.models import Collection, Document, Pair, Query
from judges.campaigns import evidence_campaigns as evidence
from judges.campaigns import lifecycle
from judges.campaigns.configurations import Configuration
from judges.campaigns.estimates import AnsweredShare, CampaignSize, Estimate, ballots_of, estimate_campaign
from judges.campaigns.token_mixes import mixes_of
from judges.domain import copies
from judges.domain.debate import FOR
from judges.engine.cache import make_cache_key
from judges.engine.plan import WINDOWED, raise_output_limit
from judges.models import Attempt, Campaign
from judges.prompts import render, writing
from judges.prompts.answering import fit_prompt
from judges.records import Inputs, Judge, Prompt

SAMPLE = 50
DEBATED = (Campaign.Policy.DEBATE, Campaign.Policy.DEBATE_ENSEMBLE)


def forecast_judging(
    collection: Collection,
    configuration: Configuration,
    *,
    limit: int | None = None,
    again: bool = False,
    fresh: bool = False,
) -> Estimate | None:
    """Estimate what a start with this configuration would still have to do; None if nothing is left.

    `again`: include judged pairs, whose earlier answers cost nothing unless they are ignored (`fresh`).
    """
    pairs = lifecycle.pairs_to_judge(collection, configuration, limit=limit, again=again)
    if not pairs:
        return None
    inputs = sample_inputs(collection)
    total, inputs = len(inputs), list(chain.from_iterable(parts_of(collection, configuration, view) for view in inputs))
    answered = answered_shares(collection, configuration, inputs) if again and not fresh else {}
    if total < pairs:  # the pairs outside the sample may not have been answered
        answered = {judge: replace(share, certain=False) for judge, share in answered.items()}
    by_windows = collection.long_documents == Collection.LongDocuments.WINDOWS and configuration.policy in WINDOWED
    # Windows after the first one are judged in addition to the pairs.
    if by_windows and (further_windows := count_windows(collection) - count_long_pairs(collection)):
        current = {"is_candidate": True, "query__is_current": True, "document__is_current": True}
        pairs += round(further_windows * pairs / Pair.objects.filter(collection=collection, **current).count())
    estimate = estimate_pairs(configuration, pairs, inputs, answered)
    return replace(estimate, notes=(*estimate.notes, *describe_long_pairs(collection)))


def parts_of(collection: Collection, configuration: Configuration, inputs: Inputs) -> list[Inputs]:
    """Return what is judged separately: the windows of a long document, or the pair itself."""
    by_windows = collection.long_documents == Collection.LongDocuments.WINDOWS and configuration.policy in WINDOWED
    return (inputs.parts if by_windows else []) or [inputs]


def describe_long_pairs(collection: Collection) -> list[str]:
    """Say how many candidates have a long document, and how these are judged."""
    if not (count := count_long_pairs(collection)):
        return []
    note = {
        Collection.LongDocuments.CUT: ngettext(
            "%(count)s pair has a document of more than %(shown)s characters: judges read its beginning alone",
            "%(count)s pairs have documents of more than %(shown)s characters: judges read their beginning alone",
            count,
        ),
        Collection.LongDocuments.PEOPLE: ngettext(
            "%(count)s pair has a document of more than %(shown)s characters and goes to people without a call",
            "%(count)s pairs have documents of more than %(shown)s characters and go to people without a call",
            count,
        ),
        Collection.LongDocuments.WINDOWS: ngettext(
            "%(count)s pair has a document of more than %(shown)s characters: judges read its %(windows)s windows, "
            "each apart",
            "%(count)s pairs have documents of more than %(shown)s characters: judges read their %(windows)s windows, "
            "each apart",
            count,
        ),
        Collection.LongDocuments.CONTEXT: ngettext(
            "%(count)s pair has a document of more than %(shown)s characters, which judges read whole",
            "%(count)s pairs have documents of more than %(shown)s characters, which judges read whole",
            count,
        ),
    }[Collection.LongDocuments(collection.long_documents)]
    return [note % {"count": f"{count:,}", "shown": f"{SHOWN:,}", "windows": f"{count_windows(collection):,}"}]


def answered_shares(
    collection: Collection, configuration: Configuration, inputs: Sequence[Inputs]
) -> dict[int, AnsweredShare]:
    """Return the share of each judge's first calls about these pairs that it has answered before, by its id."""
    cache_keys: dict[int, list[str]] = defaultdict(list)

    def note(judge: Judge, prompt: Prompt, schema: dict[str, Any], sample: int = 0) -> None:
        cache_keys[judge.id].append(make_cache_key(judge, fit_prompt(prompt, judge, schema), sample, collection.pk))

    seats = configuration.protocol.debate_agents(len(configuration.debaters)) if configuration.debaters else ()
    temperature = configuration.protocol.temperature
    own = {} if temperature is None else {"temperature": temperature}
    debaters = [replace(judge, parameters={**judge.parameters, **own}) for judge in configuration.debaters]
    for view in inputs:
        if configuration.policy in DEBATED:
            for agent, judge in zip(seats, debaters, strict=True):
                note(judge, render.turn_prompt(view, agent, 1, None, seats), render.TURN_SCHEMA)
        if configuration.policy != Campaign.Policy.DEBATE:
            voters = (
                configuration.voters[:1] if configuration.policy == Campaign.Policy.SINGLE else configuration.voters
            )
            for judge, sample in zip(voters, copies.sample_indexes(voters), strict=True):
                note(judge, *render.render_ballot(view, judge), sample)
    keys = [key for listed in cache_keys.values() for key in listed]
    stored = Attempt.objects.filter(cache_key__in=keys, outcome=Attempt.Outcome.LABELLED)
    answered = set(stored.values_list("cache_key", flat=True))
    return {
        judge: AnsweredShare(sum(key in answered for key in listed) / len(listed))
        for judge, listed in cache_keys.items()
    }


def estimate_pairs(
    configuration: Configuration, pairs: int, inputs: Sequence[Inputs], answered: Mapping[int, AnsweredShare] = {}
) -> Estimate:
    """Estimate the judging of `pairs` pairs, of which `inputs` is a sample; `answered`: shares answered before."""
    size = CampaignSize(
        pairs=pairs,
        policy=configuration.policy,
        debaters=configuration.debaters
        if configuration.protocol.debate_for_people or configuration.policy in DEBATED
        else (),
        voters=configuration.voters,
        rounds=configuration.rounds,
        early_stop=configuration.early_stop,
        majority=configuration.majority,
        filters=configuration.filters,
        adjudicator=configuration.adjudicator,
        play_on=configuration.protocol.play_on,
        batch=configuration.protocol.batch,
        mixes=mixes_of(configuration.judges),
        ballots=ballots_of([*configuration.voters, *configuration.filters], inputs),
        answered=answered,
    )
    sample = [prompt for view in inputs for prompt in (render.turn_prompt(view, FOR, 1), render.vote_prompt(view))]
    return estimate_campaign(size, sample)


def forecast_writing(
    collection: Collection, configuration: Configuration, *, limit: int | None = None
) -> Estimate | None:
    """Estimate the writing of evidence for relevant pairs without it; None if all have it."""
    missing = evidence.target_coverage(collection)["missing"]
    pairs = missing if limit is None else min(missing, limit)
    if not pairs:
        return None
    voters = [raise_output_limit(judge) for judge in configuration.voters]
    size = CampaignSize(pairs=pairs, policy="evidence", voters=voters, mixes=mixes_of(voters))
    target = EvidenceTarget("c" * 300, "e" * 700)  # texts of usual length
    sample = [writing.entity_prompt(target.evidence)]
    for inputs in sample_inputs(collection):
        sample += [writing.write_prompt(inputs), writing.measure_prompt(inputs, target)]
    return estimate_campaign(size, sample)


def sample_inputs(collection: Collection) -> list[Inputs]:
    """Return the views of a sample of pairs, spread over the collection."""
    candidates = Pair.objects.filter(collection=collection, is_candidate=True)
    pairs = candidates.select_related("query", "document").order_by("pk")
    ends = candidates.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        return []
    # Steps over keys, not offsets: an offset into a million pairs would read all pairs before it.
    step = max(1, (ends["last"] - ends["first"]) // SAMPLE)
    spread = {pairs.filter(pk__gte=key).first() for key in range(ends["first"], ends["last"] + 1, step)}
    sample_pairs = sorted(filter(None, spread), key=lambda pair: pair.pk)[:SAMPLE]
    return [pair_inputs(collection, pair.query, pair.document) for pair in sample_pairs]


def pair_inputs(owner: Collection | Campaign, query: Query, document: Document) -> Inputs:
    """Return a judge's view of a pair. `owner` defines relevance: the collection, or a campaign as of its start."""
    definition = owner.relevance.of(query)
    answers = tuple(query.answers)
    collection = owner.collection if isinstance(owner, Campaign) else owner
    # The largest number of characters of a document that judges of the collection are shown.
    shown = WHOLE if collection.long_documents == Collection.LongDocuments.CONTEXT else SHOWN
    return Inputs(query.text, answers, document.title, document.text, definition, collection.pk, document.pk, shown)
