"""The debate study: how ways to debate compare, from the turns of stored campaigns (DREAM B)."""

from collections.abc import Iterator, Sequence
from itertools import chain, permutations
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotation.quality.policies import reading
from annotation.quality.policies.replay import replay_policy
from annotation.quality.policies.rules import Rule
from annotation.quality.policies.stored import CallTotals, StoredAnswers, group_answers
from annotation.quality.policies.study import (
    Debate,
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
from judges.records import Turn

STANCES = {
    "relevant-first": gettext_noop("relevant first"),
    "irrelevant-first": gettext_noop("not relevant first"),
}


def study_debates(collection: Collection, campaigns: Sequence[int] = ()) -> dict[str, Any]:
    """Campaigns that debate, oldest first, and what the order of stances does, as JSON takes it. Raises BadInput."""
    policies = [Campaign.Policy.DEBATE, Campaign.Policy.DEBATE_ENSEMBLE]
    rows = Campaign.objects.filter(collection=collection, policy__in=policies).order_by("pk")
    known = {campaign.number: campaign for campaign in rows}
    if unknown := [number for number in campaigns if number not in known]:
        raise BadOption("campaigns", f"{collection.name} has no campaign {unknown[0]} that debates.")
    if not known:
        raise BadInput(f"{collection.name} has no debate yet: start a campaign with the policy debate")
    studied = [(known[number], *_study_campaign(known[number])) for number in campaigns or known]
    return {
        "collection": collection.name,
        "campaigns": [document for _campaign, document, _labels in studied],
        "orders": [
            {"relevant_first": first.number, "irrelevant_first": second.number, **order_table(mine, others)}
            for (first, _, mine), (second, _, others) in permutations(studied, 2)
            if _differ_in_order(first, second)
        ],
    }


def _study_campaign(campaign: Campaign) -> tuple[dict[str, Any], dict[int, int | None]]:
    """Read a campaign's turns: its document, and labels by pair (None: no agreement)."""
    panel, protocol = reading.panel_of(campaign), Protocol.of(campaign.protocol)
    truths = reading.truths_of(campaign)
    gold = {pair: truth.gold for pair, truth in truths.items() if truth.gold is not None}
    debates: dict[int, Debate] = {}
    spent = CallTotals()

    def read_pairs() -> Iterator[StoredAnswers]:
        nonlocal spent
        for one in reading.pairs_of(campaign, truths):
            # Every agent's verdict, round by round as far as it was played; None for a turn that brought none.
            verdicts = {at: turn.verdict for at, turn in one.turns.items() if isinstance(turn, Turn)}
            played = [r for r in range(1, campaign.rounds + 1) if any((r, seat) in one.turns for seat in panel.agents)]
            debates[one.pair] = [tuple(verdicts.get((r, seat)) for seat in panel.agents) for r in played]
            windows = chain(one.spent.items(), *(part.items() for part in one.beside.values()))
            spent += sum((took for (role, _, _), took in windows if role != "vote"), CallTotals())
            yield one

    # One snapshot for the pairs that are read in chunks.
    with transaction.atomic():
        gathered = group_answers(read_pairs())
    by_round = [
        {pair: debate_label(debate, rounds) for pair, debate in debates.items()}
        for rounds in range(1, campaign.rounds + 1)
    ]
    # Over all pairs after the campaign's own rounds, by who settles the rest (DREAM table 2).
    after = replay_policy(Rule("debate", campaign.rounds), panel, gathered).after
    document = {
        "campaign": campaign.number,
        "name": name_of(campaign),
        "agents": len(campaign.debaters),
        **{name: getattr(protocol, name) for name in ("stance_order", "temperature", "play_on")},
        "rounds": [
            {"rounds": rounds, **measure_configuration(labels, gold)} for rounds, labels in enumerate(by_round, 1)
        ],
        "after": {settler: measured.document() for settler, measured in after.items()},
        # Nothing can be said of it where debates ended with their agreement.
        "persistence": (measure_persistence(debates, gold) if protocol.play_on else []) or None,
        "calls": spent.calls,
        "machine": spent.cost,
    }
    return document, by_round[-1]


def name_of(campaign: Campaign) -> str:
    """Name a way to debate: "2 agents (a, b), relevant first, temperature 0.6, 2 rounds"."""
    protocol, found = Protocol.of(campaign.protocol), JudgeVersion.objects.in_bulk(campaign.debaters)
    agents = [found[pk] for pk in campaign.debaters]
    names = ", ".join(str(agent) for agent in agents)
    said = ngettext("%(number)s agent (%(names)s)", "%(number)s agents (%(names)s)", len(agents))
    parts = [said % {"number": len(agents), "names": names}, _(STANCES[protocol.stance_order])]
    # The campaign's temperature goes before a judge's; without either the provider decides.
    own = {agent.parameters.get("temperature") for agent in agents}
    known = own if protocol.temperature is None else {protocol.temperature}
    temperatures = sorted(float(value) for value in known if value is not None)
    parts += [_("temperature %(value)s") % {"value": f"{value:g}"} for value in temperatures]
    rounds = ngettext("%(number)s round", "%(number)s rounds", campaign.rounds) % {"number": campaign.rounds}
    return ", ".join([*parts, rounds, *([_("played on")] if protocol.play_on else [])])


def _differ_in_order(first: Campaign, second: Campaign) -> bool:
    """Say whether the first has relevant first, the second not, and both are alike in the rest of the debate."""
    protocols = [Protocol.of(one.protocol) for one in (first, second)]
    mine, others = (
        (one.debaters, one.rounds, protocol.temperature, protocol.play_on)
        for one, protocol in zip((first, second), protocols, strict=True)
    )
    return [protocol.stance_order for protocol in protocols] == list(ORDERS) and mine == others
