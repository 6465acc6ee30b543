"""Judging of one pair: which questions its policy asks, in which order, and the outcome that the answers decide."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from corpus.collections.task_order import pair_priority
from corpus.document_limit import SHOWN
from judges.domain import audits, debate, ensemble, routing, stance_flip_guard
from judges.domain.routing import NoVerdict, RoutingOutcome, RoutingState
from judges.engine.answers import describe_own_fault
from judges.engine.budget import BudgetExhausted
from judges.engine.calls import Caller, Cancelled, JudgeQuestion
from judges.engine.leases import Claimed
from judges.engine.plan import Plan
from judges.engine.rows import OutcomeRow
from judges.prompts import render
from judges.records import DebateAgent, Judge, Side, Turn

logger = logging.getLogger(__name__)
Turns = dict[tuple[int, DebateAgent], Turn | NoVerdict]
Votes = dict[int, Turn | NoVerdict]
FAILED = RoutingOutcome(RoutingState.FAILED, None, routing.EscalationReason.ERROR, None, 0.0)
TOO_LONG = RoutingOutcome(RoutingState.ESCALATED, None, routing.EscalationReason.LONG, None, 1.0)
# Looked up for every turn of every pair: an enumeration takes ten times as long to find its member.
SIDES = {side.value: side for side in Side}


async def judge_pair(caller: Caller, claimed: Claimed) -> OutcomeRow:
    """Ask every question that the policy needs, and decide. Raises Cancelled, BudgetExhausted.

    1. Send a long document to people if the collection says so: judges would see only a part of it.
    2. Ask the judges, about each window of the document or about the whole pair.
    3. Decide each window; the deciding one is the pair from then on: people, audits and exports get its evidence.
    4. Escalate a label whose route failed its audit (judges.engine.route_breakers).
    5. Play a debate for people, if an escalated pair has none and the protocol asks for one.
    """
    plan = caller.plan
    policy = routing.RoutingPolicy(plan.row.policy)
    if plan.row.collection.long_documents == "people" and len(claimed.inputs.document) > SHOWN:
        return build_decision(plan, claimed, TOO_LONG)
    parts = claimed.parts
    await _gather_all([_ask_judges(caller, part, policy) for part in parts])
    outcomes = [_decide_outcome(plan, part) for part in parts]
    index = routing.deciding_window(outcomes)
    claimed, outcome = parts[index], outcomes[index]
    if outcome.label is not None and _label_route(claimed, outcome).key in plan.stopped:
        outcome = routing.escalate_outcome(outcome)
    for_people = outcome.state is RoutingState.ESCALATED and plan.protocol.debate_for_people
    if for_people and plan.debaters and not policy.debates:
        # The debate changes neither outcome nor reason. Once the budget is spent, people judge without it.
        with contextlib.suppress(BudgetExhausted):
            await play_debate(caller, claimed)
    return build_decision(plan, claimed, outcome)


async def _ask_judges(caller: Caller, claimed: Claimed, policy: routing.RoutingPolicy) -> None:
    """Ask every question that the policy needs about a pair, or about a window of its document."""
    # The filter is asked first and alone: if all of its judges say no, nothing else is paid for.
    filters = enumerate(caller.plan.filter)
    await _gather_all([_ask_vote(caller, claimed, ("filter", 0, n), judge) for n, judge in filters])
    if routing.is_filtered_out(filter_votes(claimed)):
        return
    # Debate and votes at the same time: neither depends on the other's outcome.
    steps: list[Coroutine[Any, Any, object]] = []
    if policy.debates:
        steps.append(_debate_and_adjudicate(caller, claimed))
    if policy.votes:
        steps.append(ask_panel(caller, claimed))
    await _gather_all(steps)


def _decide_outcome(plan: Plan, claimed: Claimed) -> RoutingOutcome:
    turns = turns_of(claimed)
    # The guard examines the agreement that ends the debate; without debaters there is none.
    move = _next_move(plan, turns) if plan.protocol.guard and plan.debaters else None
    return routing.decide(
        plan.row.policy,
        plan.row.rounds,
        plan.row.majority,
        turns,
        votes_of(claimed),
        failed_to_people=plan.row.failed_to_people,
        agents=plan.seats or debate.PAIR,
        adjudicated=claimed.ended.get(("adjudicate", plan.row.rounds, 0)),
        filtered=filter_votes(claimed),
        collapsed=isinstance(move, debate.Agreed) and stance_flip_guard.relies_on_stance_flip(turns, move.round),
    )


def turns_of(claimed: Claimed) -> Turns:
    return {
        (round, DebateAgent(SIDES[role], n)): turn for (role, round, n), turn in claimed.ended.items() if role in SIDES
    }


def votes_of(claimed: Claimed) -> Votes:
    return {index: vote for (role, _, index), vote in claimed.ended.items() if role == "vote"}


def filter_votes(claimed: Claimed) -> list[Turn | NoVerdict]:
    return [vote for (role, _, _), vote in claimed.ended.items() if role == "filter"]


async def _debate_and_adjudicate(caller: Caller, claimed: Claimed) -> None:
    """Play the debate; if it ends in disagreement, ask the adjudicator, if there is one."""
    await play_debate(caller, claimed)
    plan, turns = caller.plan, turns_of(claimed)
    if plan.adjudicator is None or not isinstance(_next_move(plan, turns), debate.Disagreed):
        return
    # The adjudicator sees only the last round, without turns that have no verdict.
    last_turns = {
        agent: turn for (round, agent), turn in turns.items() if round == plan.row.rounds and isinstance(turn, Turn)
    }
    question = JudgeQuestion(
        slot=("adjudicate", plan.row.rounds, 0),
        judge=plan.adjudicator,
        prompt=render.adjudicate_prompt(claimed.inputs, last_turns, plan.seats),
        schema=render.VOTE_SCHEMA,
    )
    await caller.ask(claimed, question)


async def play_debate(caller: Caller, claimed: Claimed) -> None:
    """Play the debate round by round. The agents of a round are asked at the same time."""
    plan = caller.plan
    while isinstance(move := _next_move(plan, turns_of(claimed)), debate.TurnRequest):
        questions = [
            JudgeQuestion(
                slot=(agent.side.value, move.round, agent.couple),
                judge=plan.debaters[plan.seats.index(agent)],
                prompt=render.turn_prompt(claimed.inputs, agent, move.round, move.history, plan.seats),
                schema=render.TURN_SCHEMA,
                history=move.history,
            )
            for agent in move.agents
        ]
        await _gather_all([caller.ask(claimed, question) for question in questions])


def _next_move(plan: Plan, turns: Turns) -> debate.Move:
    return debate.next_move(turns, plan.row.rounds, plan.seats, play_on=plan.protocol.play_on)


async def ask_panel(caller: Caller, claimed: Claimed) -> None:
    """Ask for the panel's votes. Only under `ensemble` may an early stop leave some unasked."""
    plan = caller.plan
    size = 1 if plan.row.policy == routing.RoutingPolicy.SINGLE else len(plan.voters)
    early_stop = plan.row.early_stop and plan.row.policy == routing.RoutingPolicy.ENSEMBLE
    # The order is drawn for each pair, so that an early stop does not always spare the same judges.
    seed = ensemble.pair_seed(plan.row.seed, claimed.pair)
    while True:
        votes = votes_of(claimed).items()
        verdicts = {index: None if isinstance(vote, NoVerdict) else vote.verdict for index, vote in votes}
        indexes = ensemble.next_votes(verdicts, size, plan.row.majority, early_stop, seed)
        if not indexes:
            return
        await _gather_all([_ask_voter(caller, claimed, index) for index in indexes])


async def _ask_voter(caller: Caller, claimed: Claimed, index: int) -> None:
    """Ask for a vote: one answer, or of several generations the one nearest their mean (ERank 3.2)."""
    plan = caller.plan
    judge, sample = plan.voters[index], plan.samples[index]
    if judge.generations == 1:
        await _ask_vote(caller, claimed, ("vote", 0, index), judge, sample)
        return
    slots = [("generation", number, index) for number in range(judge.generations)]
    # Far enough apart that no generation shares its cache key with another voter's sample.
    samples = [sample + number * len(plan.voters) for number in range(judge.generations)]
    await _gather_all([_ask_vote(caller, claimed, slot, judge, n) for slot, n in zip(slots, samples, strict=True)])
    answers = [claimed.ended[slot] for slot in slots]
    nearest = ensemble.nearest_to_mean([None if isinstance(answer, NoVerdict) else answer.score for answer in answers])
    if nearest is None:
        # No generation has a score: the first one, which says why, becomes the vote.
        claimed.ended["vote", 0, index] = answers[0]
    else:
        await _ask_vote(caller, claimed, ("vote", 0, index), judge, samples[nearest])


async def _ask_vote(
    caller: Caller, claimed: Claimed, slot: tuple[str, int, int], judge: Judge, sample: int = 0
) -> None:
    if judge.ballot_key not in claimed.ballots:  # rendered once for all judges with the same question: it is long
        claimed.ballots[judge.ballot_key] = render.render_ballot(claimed.inputs, judge)
    prompt, schema = claimed.ballots[judge.ballot_key]
    await caller.ask(claimed, JudgeQuestion(slot=slot, judge=judge, prompt=prompt, schema=schema, key_sample=sample))


async def _gather_all(steps: list[Coroutine[Any, Any, object]]) -> None:
    """Run all steps to their end, then raise the exception of one of them, so that no paid answer is dropped."""
    results = await asyncio.gather(*steps, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    # Our own errors first: an interrupted pair is tried again, a defect must be seen.
    for error in errors:
        if not isinstance(error, Cancelled | BudgetExhausted):
            raise error
    if errors:
        raise errors[0]


def build_decision(plan: Plan, claimed: Claimed, outcome: RoutingOutcome) -> OutcomeRow:
    """Return the row of the outcome, with its priority for people and its draw for the audit."""
    priority = pair_priority(
        plan.row.collection.order,
        plan.row.collection.seed,
        pair_id=claimed.pair,
        query_id=claimed.query,
        uncertainty=outcome.uncertainty,
    )
    route = _label_route(claimed, outcome) if outcome.label is not None else None
    # Only labels are audited: people judge the escalated pairs anyway.
    probability = plan.row.collection.audit if route else 0.0
    return OutcomeRow(
        {
            "work": claimed.work,
            "fence": claimed.fence,
            "campaign": plan.campaign,
            "pair": claimed.pair,
            "collection": plan.collection,
            "state": outcome.state.value,
            "label": outcome.label,
            "reason": outcome.reason.value,
            "error": claimed.last_error if outcome.state is RoutingState.FAILED else "",
            "agreed": outcome.agreed_in_round,
            "window": claimed.window,
            "uncertainty": outcome.uncertainty,
            "priority": priority,
            "overlap": plan.people,
            "assessor": plan.assessors.get(outcome.route, 0),
            "grade": plan.row.collection.relevant_from if outcome.label else 0,
            "origin": routing.ORIGINS.get(outcome.route, plan.row.policy),
            "stratum": route.key if route else None,
            "probability": probability,
            "drawn": probability > 0 and audits.uniform_draw(plan.row.collection.seed, claimed.pair) < probability,
        }
    )


def _label_route(claimed: Claimed, outcome: RoutingOutcome) -> audits.Route:
    """Return the route by which the pair was labelled: the round that agreed, the margin of the votes, the label."""
    label = outcome.label or 0
    verdicts = [vote.verdict for vote in votes_of(claimed).values() if not isinstance(vote, NoVerdict)]
    # The margin is the number of votes for the label minus those against it.
    return audits.Route(outcome.agreed_in_round or 0, 2 * verdicts.count(label) - len(verdicts), label, outcome.route)


def log_outcome(outcome: OutcomeRow) -> None:
    names = ("state", "label", "reason")
    logger.info("pair judged", extra={name: value for name in names if (value := outcome.row.get(name)) is not None})


def fail_pair(plan: Plan, claimed: Claimed, error: Exception) -> OutcomeRow:
    """Return the outcome of a pair that failed because of an error in our own code."""
    claimed.last_error = describe_own_fault(error)
    return build_decision(plan, claimed, FAILED)
