"""Reader of a campaign's stored answers, pair by pair and never all at once."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from annotation.quality.policies.rules import PolicyPanel
from annotation.quality.policies.stored import (
    CallTotals,
    CampaignAnswers,
    ReferenceLabels,
    StoredAnswers,
    group_answers,
)
from corpus.labels import reference_grades
from corpus.models import Collection
from judges.domain.copies import number_names
from judges.domain.protocol import Protocol
from judges.domain.verdicts import NoVerdict
from judges.models import Campaign, JudgeVersion, Work
from judges.records import DebateAgent, Quote, Side, Slot, Turn
from store.sql import fetch_rows, read_sql

READ_ATTEMPTS = read_sql(__file__, "read_attempts")
READ_PEOPLE = read_sql(__file__, "read_people")
# Without failed pairs, which have no outcome under any policy.
ENDED = Q(state__in=[Work.State.LABELLED, Work.State.ESCALATED]) & ~Q(reason="error")

CHUNK = 5_000
ROLES = ["for", "against", "vote", "generation", "adjudicate"]


def panel_of(campaign: Campaign) -> PolicyPanel:
    """Return the campaign's judges and settings."""
    versions = JudgeVersion.objects.in_bulk(campaign.voters)
    agents = Protocol.of(campaign.protocol).debate_agents(max(2, len(campaign.debaters)))
    return PolicyPanel(
        judges=number_names([versions[pk].name for pk in campaign.voters]),
        majority=1 if campaign.policy == Campaign.Policy.SINGLE else campaign.majority,
        early_stop=campaign.early_stop and campaign.policy == Campaign.Policy.ENSEMBLE,
        rounds=campaign.rounds,
        agents=agents,
    )


def read_answers(campaign: Campaign) -> CampaignAnswers:
    """Read all pairs that the campaign labelled or escalated, without those that its filter dropped."""
    truths = truths_of(campaign)
    with transaction.atomic():
        expected = Work.objects.filter(ENDED, campaign=campaign).count()
        # By the expected number the samples of latency are spread over all pairs.
        return group_answers(pairs_of(campaign, truths), expected=expected)


def pairs_of(campaign: Campaign, truths: Mapping[int, ReferenceLabels]) -> Iterator[StoredAnswers]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(READ_ATTEMPTS, {"campaign": campaign.pk, "roles": ROLES})
        # In chunks and grouped as they arrive: a campaign may have millions of attempts.
        attempts = chain.from_iterable(iter(partial(cursor.fetchmany, CHUNK), []))
        for pair, rows in groupby(attempts, key=itemgetter(0)):
            answers = StoredAnswers(int(pair), truth=truths.get(int(pair), ReferenceLabels()))
            add_attempts(answers, [row[1:] for row in rows])
            if answers.turns or answers.votes:
                yield answers


def add_attempts(answers: StoredAnswers, rows: list[tuple[Any, ...]]) -> None:
    """Add a pair's attempts, the oldest first. A turn or vote without an attempt that counts has no verdict."""
    generations = {agent for role, _, agent, *_ in rows if role == "generation"}
    # Where an attempt of a slot counts, the failed ones only add to its cost.
    counted_slots = {row[:3] for row in rows if row[4] and row[-2] == row[-1]}
    voters = {agent for role, _, agent, *_, window, deciding in rows if role == "vote" and window == deciding}
    for role, round, agent, outcome, counts, verdict, cached, ms, cost, quotes, probabilities, window, deciding in rows:
        slot: Slot = ("vote", 0, agent) if role == "generation" else (role, round, agent)
        # The vote of a judge with several generations is a copy of one of them and made no call.
        is_copy = role == "vote" and cached and agent in generations
        if not is_copy:
            totals = answers.spent if window == deciding else answers.beside.setdefault(window, {})
            totals[slot] = totals.get(slot, CallTotals()) + CallTotals(1, cost or 0.0, int(cost is None), ms)
        answers.window = deciding
        # Answers about a window that did not decide only add to the cost.
        if window != deciding:
            continue
        # So do generations where there is a vote, and failed attempts where one counts.
        if (role == "generation" and agent in voters) or (slot in counted_slots and not counts):
            continue
        answer: Turn | NoVerdict = NoVerdict("error" if outcome == "labelled" else outcome)
        if counts and verdict is not None:
            evidence = tuple(Quote("", quote["start"], quote["end"]) for quote in json.loads(quotes or "[]"))
            answer = Turn(verdict, "", evidence, probabilities=json.loads(probabilities or "null"))
        if slot[0] == "vote":
            answers.votes[agent] = answer
        elif role == "adjudicate":
            answers.adjudged[round] = answer
        else:
            answers.turns[round, DebateAgent(Side(role), agent)] = answer


def truths_of(campaign: Campaign) -> dict[int, ReferenceLabels]:
    """Read the true labels of pairs: reference grades, and people's labels with their weights."""
    collection: Collection = campaign.collection
    gold = {pair: int(grade >= collection.relevant_from) for pair, grade in reference_grades(collection).items()}
    sample = fetch_rows(READ_PEOPLE, campaign=campaign.pk, relevant=collection.relevant_from)
    weights = sampling_weights([(stratum, probability, grade is not None) for _, stratum, probability, grade in sample])
    people = {
        pair: (int(relevant), weight)
        for (pair, _, _, relevant), weight in zip(sample, weights, strict=True)
        if relevant is not None
    }
    return {
        pair: ReferenceLabels(gold.get(pair), *people.get(pair, (None, 0.0))) for pair in gold.keys() | people.keys()
    }


def sampling_weights(sample: Sequence[tuple[str, float, bool]]) -> list[float]:
    """Return the weights of sampled pairs: Horvitz-Thompson, scaled up for pairs that are not resolved.

    `sample`: stratum, sampling probability, and whether the pair is resolved. Unresolved pairs are taken to
    be like the resolved ones of their stratum and probability; parts of a campaign
    (judges.engine.audit_sampling) have probabilities of their own.
    """
    drawn, resolved = Counter[tuple[str, float]](), Counter[tuple[str, float]]()
    for stratum, probability, is_resolved in sample:
        drawn[stratum, probability] += 1
        resolved[stratum, probability] += is_resolved
    return [
        drawn[stratum, probability] / resolved[stratum, probability] / probability if is_resolved else 0.0
        for stratum, probability, is_resolved in sample
    ]
