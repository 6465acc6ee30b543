"""One pair from its evidence to its outcome: what is asked, in which order, and what the answers decide."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from corpus.items import priority
from judges import audits, debate, ensemble, prompts, routing
from judges.engine.budget import Spent
from judges.engine.calls import Caller, Question, Stopped
from judges.engine.claims import Claimed
from judges.engine.plan import Plan
from judges.engine.rows import Decided
from judges.records import Prompt, Side, Turn
from judges.routing import Gone, Outcome, State

Turns = dict[tuple[int, Side], Turn | Gone]
Votes = dict[int, Turn | Gone]


async def judge(caller: Caller, claimed: Claimed) -> Decided:
    """Ask everything that the policy needs and decide. Raises Stopped, Spent."""
    plan = caller.plan
    policy = routing.Policy(plan.policy)
    parts: list[Coroutine[Any, Any, object]] = []
    if policy.debates:
        parts.append(play(caller, claimed))
    if policy.votes:
        parts.append(vote(caller, claimed))
    await _together(parts)
    outcome = routing.decide(
        plan.policy,
        plan.rounds,
        plan.majority,
        turns_of(claimed),
        votes_of(claimed),
        failed_to_people=plan.failed_to_people,
    )
    if outcome.state is State.ESCALATED and not policy.debates and plan.debaters:
        await _play_for_people(caller, claimed)
    return decided(plan, claimed, outcome)


def turns_of(claimed: Claimed) -> Turns:
    """The debate so far."""
    return {(round, Side(role)): one for (role, round, _), one in claimed.ended.items() if role != "vote"}


def votes_of(claimed: Claimed) -> Votes:
    """The votes so far, by place."""
    return {place: one for (role, _, place), one in claimed.ended.items() if role == "vote"}


async def play(caller: Caller, claimed: Claimed) -> None:
    """The debate, round by round; both sides of a round are asked before either has answered."""
    plan = caller.plan
    while isinstance(move := debate.next_move(turns_of(claimed), plan.rounds), debate.Ask):
        await _together([_turn(caller, claimed, move, side) for side in move.sides])


async def _turn(caller: Caller, claimed: Claimed, move: debate.Ask, side: Side) -> None:
    question = Question(
        slot=(side.value, move.round, 0),
        judge=caller.plan.debaters[0 if side is Side.FOR else 1],
        prompt=prompts.turn_prompt(claimed.inputs, side, move.round, move.history),
        schema=prompts.TURN_SCHEMA,
        history=move.history,
    )
    await caller.ask(claimed, question)


async def vote(caller: Caller, claimed: Claimed) -> None:
    """The panel's votes. Only under `ensemble` may an early stop leave some unasked."""
    plan = caller.plan
    size = 1 if plan.policy == routing.Policy.SINGLE else len(plan.voters)
    early = plan.early_stop and plan.policy == routing.Policy.ENSEMBLE
    seed = ensemble.pair_seed(plan.seed, claimed.pair)
    prompt = prompts.vote_prompt(claimed.inputs)
    while places := ensemble.next_votes(_cast(claimed), size, plan.majority, early, seed):
        await _together([_vote(caller, claimed, prompt, place) for place in places])


def _cast(claimed: Claimed) -> dict[int, int | None]:
    return {place: None if isinstance(one, Gone) else one.verdict for place, one in votes_of(claimed).items()}


async def _vote(caller: Caller, claimed: Claimed, prompt: Prompt, place: int) -> None:
    plan = caller.plan
    question = Question(
        slot=("vote", 0, place),
        judge=plan.voters[place],
        prompt=prompt,
        schema=prompts.VOTE_SCHEMA,
        key_sample=plan.samples[place],
    )
    await caller.ask(claimed, question)


async def _play_for_people(caller: Caller, claimed: Claimed) -> None:
    """An escalation without a debate gets one, so that nobody meets a pair without it (SPEC S2).

    It changes neither outcome nor reason; where the budget is spent the item opens without it.
    """
    try:
        await play(caller, claimed)
    except Spent:
        return


async def _together(parts: list[Coroutine[Any, Any, object]]) -> None:
    """Run all to their end, then raise what one of them raised: an answer that is on its way is never thrown away."""
    results = await asyncio.gather(*parts, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in errors:
        if not isinstance(error, Stopped | Spent):
            raise error
    if errors:
        raise errors[0]


def decided(plan: Plan, claimed: Claimed, outcome: Outcome) -> Decided:
    """The row of the outcome."""
    uncertainty = outcome.uncertainty
    place = priority(plan.order, plan.order_seed, pair_id=claimed.pair, query_id=claimed.query, uncertainty=uncertainty)
    route = audits.Route(*_how(claimed, outcome)) if outcome.label is not None else None
    probability = audits.probability(plan.audit, plan.pairs, route) if route else 0.0
    return Decided(
        {
            "work": claimed.work,
            "fence": claimed.fence,
            "campaign": plan.campaign,
            "pair": claimed.pair,
            "collection": plan.collection,
            "state": outcome.state.value,
            "label": outcome.label,
            "reason": outcome.reason.value,
            "error": claimed.last_error if outcome.state is State.FAILED else "",
            "agreed": outcome.agreed_in_round,
            "uncertainty": uncertainty,
            "priority": place,
            "overlap": plan.overlap,
            "assessor": plan.assessor,
            "grade": plan.relevant if outcome.label else 0,
            "origin": plan.policy,
            "stratum": route.key if route else None,
            "probability": probability,
            "drawn": probability > 0 and audits.chance(plan.order_seed, claimed.pair) < probability,
        }
    )


def _how(claimed: Claimed, outcome: Outcome) -> tuple[int, int, int]:
    """How the pair came to its label: the round that agreed, by how many votes, and the label."""
    label = outcome.label or 0
    cast = [one.verdict for one in votes_of(claimed).values() if not isinstance(one, Gone)]
    return outcome.agreed_in_round or 0, 2 * cast.count(label) - len(cast), label


def broken(plan: Plan, claimed: Claimed, error: Exception) -> Decided:
    """A pair that our own code cannot judge fails and says why."""
    claimed.last_error = f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]
    return decided(plan, claimed, Outcome(State.FAILED, None, routing.Reason.ERROR, None, 0.0))
