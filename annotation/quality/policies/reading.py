"""Stored answers of a campaign, read from its rows pair by pair and never all at once."""

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
from annotation.quality.policies.stored import CallTotals, Gathered, ReferenceLabels, StoredAnswers, group_answers
from corpus.labels import reference_grades
from corpus.models import Collection
from judges.domain.copies import number_names
from judges.domain.protocol import Protocol
from judges.domain.verdicts import NoVerdict
from judges.models import Campaign, JudgeVersion, Work
from judges.records import DebateAgent, Quote, Side, Slot, Turn
from store.sql import fetch_rows, read_sql

ATTEMPTS = read_sql(__file__, "read_attempts")
PEOPLE = read_sql(__file__, "read_people")
# A pair that failed has no outcome under any policy: it stands outside, and is counted.
ENDED = Q(state__in=[Work.State.LABELLED, Work.State.ESCALATED]) & ~Q(reason="error")

CHUNK = 5_000
ROLES = ["for", "against", "vote", "generation", "adjudicate"]


def panel_of(campaign: Campaign) -> PolicyPanel:
    """The campaign's judges and settings."""
    found = JudgeVersion.objects.in_bulk(campaign.voters)
    agents = Protocol.of(campaign.protocol).debate_agents(max(2, len(campaign.debaters)))
    return PolicyPanel(
        judges=number_names([found[pk].name for pk in campaign.voters]),
        majority=1 if campaign.policy == Campaign.Policy.SINGLE else campaign.majority,
        early_stop=campaign.early_stop and campaign.policy == Campaign.Policy.ENSEMBLE,
        rounds=campaign.rounds,
        agents=agents,
    )


def read_answers(campaign: Campaign) -> Gathered:
    """All pairs that the campaign labelled or escalated, without those that its filter dropped."""
    truths = truths_of(campaign)
    with transaction.atomic():
        expected = Work.objects.filter(ENDED, campaign=campaign).count()
        # The expected number spreads the samples of latency over all pairs, which come one by one.
        return group_answers(pairs_of(campaign, truths), expected=expected)


def pairs_of(campaign: Campaign, truths: Mapping[int, ReferenceLabels]) -> Iterator[StoredAnswers]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(ATTEMPTS, {"campaign": campaign.pk, "roles": ROLES})
        # In chunks and grouped as they arrive: a campaign may have millions of attempts.
        rows_of_all = chain.from_iterable(iter(partial(cursor.fetchmany, CHUNK), []))
        for pair, rows in groupby(rows_of_all, key=itemgetter(0)):
            one = StoredAnswers(int(pair), truth=truths.get(int(pair), ReferenceLabels()))
            add_attempts(one, [row[1:] for row in rows])
            if one.turns or one.votes:
                yield one


def add_attempts(one: StoredAnswers, rows: list[tuple[Any, ...]]) -> None:
    """A pair's attempts, oldest first. A turn or vote without a counted try was lost."""
    generated = {who for role, _, who, *_ in rows if role == "generation"}
    # A try that counts stands for its slot; failed tries only add to its cost.
    counted = {row[:3] for row in rows if row[4] and row[-2] == row[-1]}
    kept = {who for role, _, who, *_, window, deciding in rows if role == "vote" and window == deciding}
    for role, nth, who, outcome, counts, verdict, cached, ms, cost, quotes, probabilities, window, deciding in rows:
        slot: Slot = ("vote", 0, who) if role == "generation" else (role, nth, who)
        copied = role == "vote" and cached and who in generated  # of the generation that was kept
        if not copied:
            spent = one.spent if window == deciding else one.beside.setdefault(window, {})
            spent[slot] = spent.get(slot, CallTotals()) + CallTotals(1, cost or 0.0, int(cost is None), ms)
        one.window = deciding
        if window != deciding:
            continue  # what was said of a window that did not decide only adds to the cost
        if (role == "generation" and who in kept) or (slot in counted and not counts):
            continue  # the vote is the generation that was kept, and says so itself
        said: Turn | NoVerdict = NoVerdict("error" if outcome == "labelled" else outcome)
        if counts and verdict is not None:
            found = tuple(Quote("", quote["start"], quote["end"]) for quote in json.loads(quotes or "[]"))
            said = Turn(verdict, "", found, probabilities=json.loads(probabilities or "null"))
        if slot[0] == "vote":
            one.votes[who] = said
        elif role == "adjudicate":
            one.adjudged[nth] = said
        else:
            one.turns[nth, DebateAgent(Side(role), who)] = said


def truths_of(campaign: Campaign) -> dict[int, ReferenceLabels]:
    """Read the truth of pairs: reference grades, and people's labels with weights."""
    collection: Collection = campaign.collection
    gold = {pair: int(grade >= collection.relevant_from) for pair, grade in reference_grades(collection).items()}
    asked = fetch_rows(PEOPLE, campaign=campaign.pk, relevant=collection.relevant_from)
    weights = sampling_weights([(stratum, probability, grade is not None) for _, stratum, probability, grade in asked])
    people = {
        pair: (int(relevant), weight)
        for (pair, _, _, relevant), weight in zip(asked, weights, strict=True)
        if relevant is not None
    }
    return {
        pair: ReferenceLabels(gold.get(pair), *people.get(pair, (None, 0.0))) for pair in gold.keys() | people.keys()
    }


def sampling_weights(asked: Sequence[tuple[str, float, bool]]) -> list[float]:
    """Weights of (stratum, probability, settled): 1 / probability, times asked over settled of the same two.

    So those that are not settled yet are taken to be like the settled ones of their stratum, not
    like all. Parts of a campaign (judges.campaigns.audit_sampling) have probabilities of their own.
    """
    drawn, settled = Counter[tuple[str, float]](), Counter[tuple[str, float]]()
    for stratum, probability, done in asked:
        drawn[stratum, probability] += 1
        settled[stratum, probability] += done
    # Horvitz-Thompson: 1 / probability, scaled up for drawn pairs that people have not settled yet.
    return [
        drawn[stratum, probability] / settled[stratum, probability] / probability if done else 0.0
        for stratum, probability, done in asked
    ]
