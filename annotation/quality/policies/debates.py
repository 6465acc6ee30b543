"""The debate study: comparison of debate settings, from the turns of stored campaigns (DREAM B)."""

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
    """Return, as JSON, the debates of campaigns, oldest first, and the effect of the order of stances. Raises BadInput.

    `campaigns`: their numbers; by default all that debate.
    """
    policies = [Campaign.Policy.DEBATE, Campaign.Policy.DEBATE_ENSEMBLE]
    rows = Campaign.objects.filter(collection=collection, policy__in=policies).order_by("pk")
    by_number = {campaign.number: campaign for campaign in rows}
    if unknown := [number for number in campaigns if number not in by_number]:
        raise BadOption("campaigns", f"{collection.name} has no campaign {unknown[0]} that debates.")
    if not by_number:
        raise BadInput(f"{collection.name} has no debate yet: start a campaign with the policy debate.")
    studied = [(by_number[number], *_study_campaign(by_number[number])) for number in campaigns or by_number]
    return {
        "collection": collection.name,
        "campaigns": [document for _campaign, document, _labels in studied],
        "orders": [
            {
                "relevant_first": first.number,
                "irrelevant_first": second.number,
                **order_table(first_labels, second_labels),
            }
            for (first, _, first_labels), (second, _, second_labels) in permutations(studied, 2)
            if _differ_in_order(first, second)
        ],
    }


def _study_campaign(campaign: Campaign) -> tuple[dict[str, Any], dict[int, int | None]]:
    """Read a campaign's turns. Return its document, and its labels by pair (None: no agreement)."""
    panel, protocol = reading.panel_of(campaign), Protocol.of(campaign.protocol)
    truths = reading.truths_of(campaign)
    gold = {pair: true_labels.gold for pair, true_labels in truths.items() if true_labels.gold is not None}
    debates: dict[int, Debate] = {}
    total = CallTotals()

    def read_pairs() -> Iterator[StoredAnswers]:
        nonlocal total
        for answers in reading.pairs_of(campaign, truths):
            # Verdicts of all agents by round, of the rounds that were played; None for a turn without a verdict.
            verdicts = {key: turn.verdict for key, turn in answers.turns.items() if isinstance(turn, Turn)}
            played = [
                r for r in range(1, campaign.rounds + 1) if any((r, agent) in answers.turns for agent in panel.agents)
            ]
            debates[answers.pair] = [tuple(verdicts.get((r, agent)) for agent in panel.agents) for r in played]
            windows = chain(answers.spent.items(), *(part.items() for part in answers.beside.values()))
            total += sum((totals for (role, _, _), totals in windows if role != "vote"), CallTotals())
            yield answers

    # A transaction, because the pairs are read in chunks.
    with transaction.atomic():
        gathered = group_answers(read_pairs())
    by_round = [
        {pair: debate_label(debate, rounds) for pair, debate in debates.items()}
        for rounds in range(1, campaign.rounds + 1)
    ]
    # Over all pairs after the campaign's own rounds, by who resolves the rest (DREAM table 2).
    after = replay_policy(Rule("debate", campaign.rounds), panel, gathered).after
    document = {
        "campaign": campaign.number,
        "name": name_of(campaign),
        "agents": len(campaign.debaters),
        **{name: getattr(protocol, name) for name in ("stance_order", "temperature", "play_on")},
        "rounds": [
            {"rounds": rounds, **measure_configuration(labels, gold)} for rounds, labels in enumerate(by_round, 1)
        ],
        "after": {resolver: classwise.document() for resolver, classwise in after.items()},
        # Unknown where debates ended with their agreement.
        "persistence": (measure_persistence(debates, gold) if protocol.play_on else []) or None,
        "calls": total.calls,
        "machine": total.cost,
    }
    return document, by_round[-1]


def name_of(campaign: Campaign) -> str:
    """Return the debate setting in words: "2 agents (a, b), relevant first, temperature 0.6, 2 rounds"."""
    protocol, versions = Protocol.of(campaign.protocol), JudgeVersion.objects.in_bulk(campaign.debaters)
    agents = [versions[pk] for pk in campaign.debaters]
    names = ", ".join(str(agent) for agent in agents)
    agent_names = ngettext("%(number)s agent (%(names)s)", "%(number)s agents (%(names)s)", len(agents))
    parts = [agent_names % {"number": len(agents), "names": names}, _(STANCES[protocol.stance_order])]
    # The campaign's temperature takes precedence over a judge's; without either the provider decides.
    own = {agent.parameters.get("temperature") for agent in agents}
    values = own if protocol.temperature is None else {protocol.temperature}
    temperatures = sorted(float(value) for value in values if value is not None)
    parts += [_("temperature %(value)s") % {"value": f"{value:g}"} for value in temperatures]
    rounds = ngettext("%(number)s round", "%(number)s rounds", campaign.rounds) % {"number": campaign.rounds}
    return ", ".join([*parts, rounds, *([_("played on")] if protocol.play_on else [])])


def _differ_in_order(first: Campaign, second: Campaign) -> bool:
    """Return whether the campaigns differ only in the order of stances, with the relevant stance first in the first."""
    protocols = [Protocol.of(campaign.protocol) for campaign in (first, second)]
    first_setting, second_setting = (
        (campaign.debaters, campaign.rounds, protocol.temperature, protocol.play_on)
        for campaign, protocol in zip((first, second), protocols, strict=True)
    )
    return [protocol.stance_order for protocol in protocols] == list(ORDERS) and first_setting == second_setting
