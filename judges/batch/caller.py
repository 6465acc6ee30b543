"""Asks for a batch campaign: what goes to a batch endpoint is collected, everything else is sent at once."""

from dataclasses import replace
from typing import Any

from judges.costs.budget import Budget
from judges.costs.prices import is_batched, price_for_judge
from judges.domain.verdicts import NoVerdict
from judges.engine.answers import Sent
from judges.engine.calls import Caller, Cancelled, JudgeQuestion, Tools
from judges.engine.leases import Claimed
from judges.engine.plan import Plan
from judges.records import Turn

LEASE_S = 7 * 86_400.0  # Of pairs and of money that wait for a batch: nobody renews them in between.


class WaitingForBatch(Cancelled):
    """The pair goes on when the batch is back."""


# A call for the next batch, and the JSON schema of its answer.
Collected = tuple[Sent, dict[str, Any]]


class Patient(Budget):
    """A budget whose calls are out for hours: who finds no room does not wait for them."""

    def _out(self, connection: Any) -> bool:
        return False


class Collector(Caller):
    """Asks as the engine does, and keeps what the next batches will hold in `collected`."""

    def __init__(self, tools: Tools, plan: Plan, *others: Any) -> None:
        prices = {judge.id: price_for_judge(judge, batch=True) for judge in plan.judges}
        super().__init__(tools, replace(plan, prices=prices), *others)
        self.collected: list[Collected] = []

    async def ask(self, claimed: Claimed, question: JudgeQuestion) -> Turn | NoVerdict:
        """Return the stored answer, or collect the call. Raises WaitingForBatch, Cancelled, BudgetExhausted."""
        if question.slot in claimed.ended or not is_batched(question.judge):
            return await super().ask(claimed, question)
        following = self.next_try(claimed, question)
        if following is None:
            claimed.ended[question.slot] = NoVerdict("error")
            return NoVerdict("error")
        sent = await self.prepare(claimed, question, *following)
        if isinstance(sent, Turn):
            claimed.ended[question.slot] = sent
            return sent
        self.collected.append((sent, question.schema))
        raise WaitingForBatch
