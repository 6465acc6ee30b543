"""Judging of one pair, from its evidence to its outcome: what is asked, in which order, and what answers decide."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from corpus.collections.task_order import pair_priority
from corpus.document_limit import SHOWN
from judges.costs.budget import BudgetExhausted
from judges.domain import audits, debate, ensemble, routing, stance_flip_guard
from judges.domain.routing import NoVerdict, RoutingOutcome, RoutingState
from judges.engine.answers import describe_own_fault
from judges.engine.calls import Caller, Cancelled, JudgeQuestion
from judges.engine.leases import Claimed
from judges.engine.plan import Plan
from judges.engine.rows import Decided
from judges.prompts import render
from judges.records import DebateAgent, Judge, Side, Turn

logger = logging.getLogger(__name__)
Turns = dict[tuple[int, DebateAgent], Turn | NoVerdict]
Votes = dict[int, Turn | NoVerdict]
FAILED = RoutingOutcome(RoutingState.FAILED, None, routing.EscalationReason.ERROR, None, 0.0)
TOO_LONG = RoutingOutcome(RoutingState.ESCALATED, None, routing.EscalationReason.LONG, None, 1.0)
# Looked up for every turn of every pair: an enumeration takes ten times as long to find its member.
SIDES = {side.value: side for side in Side}


async def judge_pair(caller: Caller, claimed: Claimed) -> Decided:
    """Ask everything that the policy needs and decide. Raises Cancelled, BudgetExhausted."""
    plan = caller.plan
    policy = routing.RoutingPolicy(plan.row.policy)
    if plan.row.collection.long_documents == "people" and len(claimed.inputs.document) > SHOWN:
        return build_decision(plan, claimed, TOO_LONG)  # nobody is asked about a part of a document
    parts = claimed.parts
    await _gather_all([_ask_judges(caller, part, policy) for part in parts])
    outcomes = [_decide_outcome(plan, part) for part in parts]
    # The deciding window is the pair from here on: people, audits, exports get its evidence.
    place = routing.deciding_window(outcomes)
    claimed, outcome = parts[place], outcomes[place]
    if outcome.label is not None and _label_route(claimed, outcome).key in plan.stopped:
        # Its route failed its audit: people get the pair (judges.campaigns.route_breakers).
        outcome = routing.escalate_outcome(outcome)
    for_people = outcome.state is RoutingState.ESCALATED and plan.protocol.debate_for_people
    if for_people and plan.debaters and not policy.debates:
        # An escalation without a debate gets one, so that nobody meets a pair without it. It
        # changes neither outcome nor reason; where the budget is spent the pair goes to people
        # without it.
        with contextlib.suppress(BudgetExhausted):
            await play_debate(caller, claimed)
    return build_decision(plan, claimed, outcome)


async def _ask_judges(caller: Caller, claimed: Claimed, policy: routing.RoutingPolicy) -> None:
    """Ask everything that the policy needs about a pair, or about a window of its document."""
    # The filter goes first and alone: where all of its judges say no, nothing else is paid for.
    filters = enumerate(caller.plan.filter)
    await _gather_all([_ask_vote(caller, claimed, ("filter", 0, n), judge) for n, judge in filters])
    if routing.is_filtered_out(filter_votes(claimed)):
        return
    asked: list[Coroutine[Any, Any, object]] = []
    if policy.debates:
        asked.append(_debate_and_adjudicate(caller, claimed))
    if policy.votes:
        asked.append(ask_panel(caller, claimed))
    # Debate and votes at once: neither sees the other's outcome, so waiting costs time.
    await _gather_all(asked)


def _decide_outcome(plan: Plan, claimed: Claimed) -> RoutingOutcome:
    turns = turns_of(claimed)
    # The guard looks at the agreement that the debate ends with; without debaters there is none.
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
        (round, DebateAgent(SIDES[role], n)): one for (role, round, n), one in claimed.ended.items() if role in SIDES
    }


def votes_of(claimed: Claimed) -> Votes:
    return {place: one for (role, _, place), one in claimed.ended.items() if role == "vote"}


def filter_votes(claimed: Claimed) -> list[Turn | NoVerdict]:
    return [one for (role, _, _), one in claimed.ended.items() if role == "filter"]


async def _debate_and_adjudicate(caller: Caller, claimed: Claimed) -> None:
    """Play the debate, and ask the adjudicator, if there is one, where it ends in disagreement."""
    await play_debate(caller, claimed)
    plan, turns = caller.plan, turns_of(claimed)
    if plan.adjudicator is None or not isinstance(_next_move(plan, turns), debate.Disagreed):
        return
    # The adjudicator sees only the last round. A turn without a verdict stands in no prompt.
    last = {seat: turn for (round, seat), turn in turns.items() if round == plan.row.rounds and isinstance(turn, Turn)}
    question = JudgeQuestion(
        slot=("adjudicate", plan.row.rounds, 0),
        judge=plan.adjudicator,
        prompt=render.adjudicate_prompt(claimed.inputs, last, plan.seats),
        schema=render.VOTE_SCHEMA,
    )
    await caller.ask(claimed, question)


async def play_debate(caller: Caller, claimed: Claimed) -> None:
    """Play the debate round by round; all agents of a round are asked before any has answered."""
    while isinstance(move := _next_move(caller.plan, turns_of(claimed)), debate.TurnRequest):
        await _gather_all([_ask_turn(caller, claimed, move, seat) for seat in move.agents])


def _next_move(plan: Plan, turns: Turns) -> debate.Move:
    return debate.next_move(turns, plan.row.rounds, plan.seats, play_on=plan.protocol.play_on)


async def _ask_turn(caller: Caller, claimed: Claimed, move: debate.TurnRequest, seat: DebateAgent) -> None:
    plan = caller.plan
    place = plan.seats.index(seat)
    question = JudgeQuestion(
        slot=(seat.side.value, move.round, seat.couple),
        judge=plan.debaters[place],
        prompt=render.turn_prompt(claimed.inputs, seat, move.round, move.history, plan.seats),
        schema=render.TURN_SCHEMA,
        history=move.history,
    )
    await caller.ask(claimed, question)


async def ask_panel(caller: Caller, claimed: Claimed) -> None:
    """Ask for the panel's votes. Only under `ensemble` may an early stop leave some unasked."""
    plan = caller.plan
    size = 1 if plan.row.policy == routing.RoutingPolicy.SINGLE else len(plan.voters)
    early = plan.row.early_stop and plan.row.policy == routing.RoutingPolicy.ENSEMBLE
    # Drawn for each pair, so that an early stop does not always spare the same judges.
    seed = ensemble.pair_seed(plan.row.seed, claimed.pair)
    while True:
        votes = votes_of(claimed).items()
        cast = {place: None if isinstance(one, NoVerdict) else one.verdict for place, one in votes}
        places = ensemble.next_votes(cast, size, plan.row.majority, early, seed)
        if not places:
            return
        await _gather_all([_ask_voter(caller, claimed, place) for place in places])


async def _ask_voter(caller: Caller, claimed: Claimed, place: int) -> None:
    """Ask for a vote: an answer, or that of several nearest their mean (ERank 3.2)."""
    plan = caller.plan
    judge, sample = plan.voters[place], plan.samples[place]
    if judge.generations == 1:
        await _ask_vote(caller, claimed, ("vote", 0, place), judge, sample)
        return
    slots = [("generation", number, place) for number in range(judge.generations)]
    # Far enough apart that no generation shares its cache key with another voter's sample.
    samples = [sample + number * len(plan.voters) for number in range(judge.generations)]
    await _gather_all([_ask_vote(caller, claimed, slot, judge, n) for slot, n in zip(slots, samples, strict=True)])
    answers = [claimed.ended[slot] for slot in slots]
    kept = ensemble.nearest_to_mean([None if isinstance(one, NoVerdict) else one.score for one in answers])
    if kept is None:
        # No generation has a score: the first one says why, and stands for the vote.
        claimed.ended["vote", 0, place] = answers[0]
    else:
        await _ask_vote(caller, claimed, ("vote", 0, place), judge, samples[kept])


async def _ask_vote(
    caller: Caller, claimed: Claimed, slot: tuple[str, int, int], judge: Judge, sample: int = 0
) -> None:
    asked = judge.grades, judge.decides, judge.ballot
    if asked not in claimed.ballots:  # rendered once for all who are asked alike: it is the longest text of a call
        claimed.ballots[asked] = render.render_ballot(claimed.inputs, judge)
    prompt, schema = claimed.ballots[asked]
    await caller.ask(claimed, JudgeQuestion(slot=slot, judge=judge, prompt=prompt, schema=schema, key_sample=sample))


async def _gather_all(parts: list[Coroutine[Any, Any, object]]) -> None:
    """Run all to their end, then raise what one of them raised: an answer that is on its way is never thrown away."""
    # A cancelled gather would drop calls that are out and paid for.
    results = await asyncio.gather(*parts, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    # Our own errors first: an interruption may be retried, a defect has to be seen.
    for error in errors:
        if not isinstance(error, Cancelled | BudgetExhausted):
            raise error
    if errors:
        raise errors[0]


def build_decision(plan: Plan, claimed: Claimed, outcome: RoutingOutcome) -> Decided:
    """Return the row of the outcome, and what people and audits need of it."""
    uncertainty = outcome.uncertainty
    place = pair_priority(
        plan.row.collection.order,
        plan.row.collection.seed,
        pair_id=claimed.pair,
        query_id=claimed.query,
        uncertainty=uncertainty,
    )
    route = _label_route(claimed, outcome) if outcome.label is not None else None
    # Only labels are audited: what goes to people is checked by them anyway.
    probability = plan.row.collection.audit if route else 0.0
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
            "error": claimed.last_error if outcome.state is RoutingState.FAILED else "",
            "agreed": outcome.agreed_in_round,
            "window": claimed.window,
            "uncertainty": uncertainty,
            "priority": place,
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
    """How the pair came to its label: the round that agreed, by how many votes, and the label."""
    label = outcome.label or 0
    cast = [one.verdict for one in votes_of(claimed).values() if not isinstance(one, NoVerdict)]
    # The margin of votes for the label: for minus against, over those that were cast.
    return audits.Route(outcome.agreed_in_round or 0, 2 * cast.count(label) - len(cast), label, outcome.route)


def log_outcome(row: Decided) -> None:
    said = ("state", "label", "reason")
    logger.info("pair judged", extra={name: value for name in said if (value := row.row.get(name)) is not None})


def fail_pair(plan: Plan, claimed: Claimed, error: Exception) -> Decided:
    """Return the outcome of a pair that our own code cannot judge: it fails and says why."""
    claimed.last_error = describe_own_fault(error)
    return build_decision(plan, claimed, FAILED)
