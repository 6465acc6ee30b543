"""LARA's pairs are debated before people get them, inside its campaign and its work rows (SPEC S2).

No worker drains a campaign of LARA: whoever runs the step asks, within the limits and budgets of every campaign.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
from django.db import connection

from judges.costs.budget import BudgetExhausted
from judges.engine import leases, pairs
from judges.engine import plan as plans
from judges.engine.calls import Caller
from judges.engine.leases import Claimed
from judges.inline import runner
from judges.models import Campaign
from judges.tasks import database_parameters


def play_debates(campaign: Campaign, work: Sequence[int]) -> None:
    """Let the debaters debate the pairs of these rows, from where their debates stand.

    Where the money is spent a pair has no debate, or its first rounds.
    """
    plan = plans.load_plan(campaign.pk)
    if plan is None:
        return
    # The judge whose votes are calibrated is not asked: no price of its is needed.
    asked = {judge.id: plan.prices[judge.id] for judge in plan.debaters}
    plan = replace(plan, voters=(), samples=(), prices=asked)
    with psycopg.connect(**database_parameters(), autocommit=True) as own:  # it reads JSON as the engine does
        held = [one for number in work for one in _held_leases(own, plan, number)]
    connection.close()
    runner.run_inline(plan, held, _play_debate)


def _held_leases(own: psycopg.Connection[Any], plan: plans.Plan, work: int) -> list[Claimed]:
    return [one for one in leases.running_pairs(own, plan, after=work - 1, n=1) if one.work == work]


async def _play_debate(caller: Caller, claimed: Claimed) -> None:
    try:
        await pairs.play_debate(caller, claimed)
    except BudgetExhausted:
        return
