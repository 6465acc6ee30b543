"""The debate study: how ways to debate compare, from the turns of stored campaigns (DREAM B)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotation.policies import reading
from annotation.policies.measures import Classwise
from annotation.policies.replay import replay_policy
from annotation.policies.rules import Rule
from annotation.policies.stored import CallTotals, StoredAnswers, group_answers
from annotation.policies.study import (
    Debate,
    StudyConfiguration,
    debate_label,
    measure_configuration,
    measure_persistence,
    order_table,
)
from corpus.errors import BadInput, BadOption
from corpus.models import Collection
from judges.domain.debate import ORDERS
from judges.domain.protocol import Protocol
from judges.models import Campaign, JudgeVersion
from judges.records import DebateAgent, Turn

STANCES = {
    "relevant-first": gettext_noop("relevant first"),
    "irrelevant-first": gettext_noop("not relevant first"),
}


@dataclass(frozen=True, slots=True)
class StudiedDebate:
    """A campaign's debates for the study. `by_round`: results if debates had ended after that many rounds."""

    campaign: Campaign
    name: str
    by_round: tuple[StudyConfiguration, ...]
    # By pair, after the campaign's own number of rounds; None: the agents did not agree.
    labels: Mapping[int, int | None]
    lasting: list[dict[str, Any]]  # Empty where debates ended with their agreement.
    # Over all pairs after the campaign's own number of rounds, by who settles the rest (DREAM table 2).
    after: Mapping[str, Classwise]
    spent: CallTotals


# Two campaigns that differ in the order of the stances alone: relevant first, irrelevant first, and their table.
Orders = tuple[StudiedDebate, StudiedDebate, dict[str, Any]]


def study_debates(collection: Collection, campaigns: Sequence[int] = ()) -> tuple[list[StudiedDebate], list[Orders]]:
    """Campaigns that debate, oldest first, and the pairs of them that show what the order of the stances does.

    Raises BadInput for a number that is no such campaign of the collection, or where there is none.
    """
    policies = [Campaign.Policy.DEBATE, Campaign.Policy.DEBATE_ENSEMBLE]
    rows = Campaign.objects.filter(collection=collection, policy__in=policies).order_by("pk")
    known = {campaign.number: campaign for campaign in rows}
    if unknown := [number for number in campaigns if number not in known]:
        raise BadOption("campaigns", f"{collection.name} has no campaign {unknown[0]} that debates.")
    if not known:
        raise BadInput(f"{collection.name} has no debate yet: start a campaign with the policy debate")
    studied = [studied_of(known[number]) for number in campaigns or known]
    return studied, list(compare_orders(studied))


def studied_of(campaign: Campaign) -> StudiedDebate:
    """Read one campaign's turns."""
    panel = reading.panel_of(campaign)
    truths = reading.truths_of(campaign)
    gold = {pair: truth.gold for pair, truth in truths.items() if truth.gold is not None}
    debates: dict[int, Debate] = {}
    spent = CallTotals()

    def read_pairs() -> Iterator[StoredAnswers]:
        nonlocal spent
        for one in reading.pairs_of(campaign, truths):
            debates[one.pair] = debate_verdicts(one, panel.agents, campaign.rounds)
            windows = chain(one.spent.items(), *(part.items() for part in one.beside.values()))
            spent += sum((took for (role, _, _), took in windows if role != "vote"), CallTotals())
            yield one

    # One snapshot for the pairs that are read in chunks.
    with transaction.atomic():
        gathered = group_answers(read_pairs())
    plays_on = Protocol.of(campaign.protocol).play_on
    return StudiedDebate(
        campaign,
        name_of(campaign),
        tuple(
            measure_configuration(
                f"R = {rounds}", {pair: debate_label(debate, rounds) for pair, debate in debates.items()}, gold
            )
            for rounds in range(1, campaign.rounds + 1)
        ),
        {pair: debate_label(debate, campaign.rounds) for pair, debate in debates.items()},
        measure_persistence(debates, gold) if plays_on else [],
        replay_policy(Rule("debate", campaign.rounds), panel, gathered).after,
        spent,
    )


def debate_verdicts(one: StoredAnswers, seats: Sequence[DebateAgent], rounds: int) -> Debate:
    """Return every agent's verdict, round by round as far as it was played; None for a turn that brought none."""
    verdicts = {at: turn.verdict for at, turn in one.turns.items() if isinstance(turn, Turn)}
    played = [round for round in range(1, rounds + 1) if any((round, seat) in one.turns for seat in seats)]
    return [tuple(verdicts.get((round, seat)) for seat in seats) for round in played]


def name_of(campaign: Campaign) -> str:
    """Name a way to debate: "2 agents (a, b), relevant first, temperature 0.6, 2 rounds"."""
    protocol, found = Protocol.of(campaign.protocol), JudgeVersion.objects.in_bulk(campaign.debaters)
    agents = [found[pk] for pk in campaign.debaters]
    names = ", ".join(str(agent) for agent in agents)
    said = ngettext("%(number)s agent (%(names)s)", "%(number)s agents (%(names)s)", len(agents))
    parts = [said % {"number": len(agents), "names": names}, _(STANCES[protocol.stance_order])]
    # The campaign's temperature goes before a judge's own; where neither is set the provider decides.
    own = {agent.parameters.get("temperature") for agent in agents}
    known = own if protocol.temperature is None else {protocol.temperature}
    temperatures = sorted(float(value) for value in known if value is not None)
    parts += [_("temperature %(value)s") % {"value": f"{value:g}"} for value in temperatures]
    rounds = ngettext("%(number)s round", "%(number)s rounds", campaign.rounds) % {"number": campaign.rounds}
    return ", ".join([*parts, rounds, *([_("played on")] if protocol.play_on else [])])


def compare_orders(studied: Sequence[StudiedDebate]) -> Iterable[Orders]:
    """Yield every two campaigns that differ in the order of the stances and in nothing else of the debate."""
    # Both orders of each two: which of them has relevant first is found here.
    for first, second in permutations(studied, 2):
        settings = []
        for one in (first.campaign, second.campaign):
            protocol = Protocol.of(one.protocol)
            settings.append((protocol.stance_order, (one.debaters, one.rounds, protocol.temperature, protocol.play_on)))
        (order, mine), (other_order, others) = settings
        if [order, other_order] == list(ORDERS) and mine == others:
            yield first, second, order_table(first.labels, second.labels)


def build_json_document(
    collection: Collection, studied: Sequence[StudiedDebate], swapped: Sequence[Orders]
) -> dict[str, Any]:
    """Return the study as JSON takes it."""
    return {
        "collection": collection.name,
        "campaigns": [_campaign_document(one) for one in studied],
        "orders": [_orders_document(one) for one in swapped],
    }


def _campaign_document(one: StudiedDebate) -> dict[str, Any]:
    protocol = Protocol.of(one.campaign.protocol)
    return {
        "campaign": one.campaign.number,
        "name": one.name,
        "agents": len(one.campaign.debaters),
        "stance_order": protocol.stance_order,
        "temperature": protocol.temperature,
        "play_on": protocol.play_on,
        "rounds": [
            {
                "rounds": number,
                "pairs": row.pairs,
                "escalated": row.escalated,
                "escalation": row.escalation,
                **row.measured.document(),
            }
            for number, row in enumerate(one.by_round, 1)
        ],
        "after": {settler: measured.document() for settler, measured in one.after.items()},
        "persistence": one.lasting or None,
        "calls": one.spent.calls,
        "machine": one.spent.cost,
    }


def _orders_document(one: Orders) -> dict[str, Any]:
    relevant_first, irrelevant_first, table = one
    return {
        "relevant_first": relevant_first.campaign.number,
        "irrelevant_first": irrelevant_first.campaign.number,
        **table,
    }
