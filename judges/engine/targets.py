"""One relevant pair from its texts to a target: written, measured, written once more, else given to a person (SPEC S6).

Each step is a slot of the pair like a turn or a vote: counted attempts are not asked again, whoever goes on with them.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from corpus.collections.task_order import LAST, priority
from corpus.evidence import measures as evidence
from corpus.evidence.measures import EvidenceTarget
from judges.domain.routing import EscalationReason, RoutingOutcome, RoutingState
from judges.domain.verdicts import Gone
from judges.engine import pairs
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.engine.plan import Plan
from judges.engine.rows import Decided, WrittenRows
from judges.evidence import answers, quality
from judges.prompts import writing
from judges.records import Inputs, Judge, Turn

TRIES = 2
"""What fails its measures is written anew once (SPEC S6)."""


class FailedTarget(Exception):
    """A call that is needed failed for good: the pair failed and may be tried again."""


@dataclass(frozen=True, slots=True)
class TriedTarget:
    """One try: what was written, if anything, and what is wrong with it."""

    target: EvidenceTarget | None
    problems: tuple[str, ...]
    measures: dict[str, Any]


async def write(caller: Caller, claimed: Claimed) -> Decided | WrittenRows:
    """Ask the writer and measure. Raises Stopped, Spent."""
    tried: TriedTarget | None = None
    try:
        for number in range(1, TRIES + 1):
            tried = await _try(caller, claimed, number, tried)
            if not tried.problems:
                break
    except FailedTarget:
        return pairs.decided(
            caller.plan, claimed, RoutingOutcome(RoutingState.FAILED, None, EscalationReason.ERROR, None, 0.0)
        )
    assert tried is not None
    return _row(caller.plan, claimed, tried, number)


async def _try(caller: Caller, claimed: Claimed, number: int, before: TriedTarget | None) -> TriedTarget:
    earlier, problems = (before.target, before.problems) if before else (None, ())
    writer = caller.plan.voters[0]
    prompt = writing.write_prompt(claimed.inputs, earlier, problems)
    said = await _ask(caller, claimed, JudgeQuestion(("write", number, 0), writer, prompt, writing.WRITE_SCHEMA))
    if isinstance(said, Gone):
        words = f"the writer's answer was {said.outcome}"
        return TriedTarget(None, (words,), quality.row({}, (words,)))
    return await _measured(caller, claimed, number, answers.target_of(said))


async def _measured(caller: Caller, claimed: Claimed, number: int, target: EvidenceTarget) -> TriedTarget:
    document = whole(claimed.inputs)
    measurer = caller.plan.voters[1] if len(caller.plan.voters) > 1 else None
    if measurer is None:
        rules = evidence.measure(target, query=claimed.inputs.query, document=document)
        found = quality.problems(rules)
        return TriedTarget(target, found, quality.row(evidence.as_json(rules), found))
    listed, scored = await measure(caller, claimed, measurer, target, number)
    named = [] if isinstance(listed, Gone) else answers.entities_of(listed)
    rules = evidence.measure(target, query=claimed.inputs.query, document=document, named=named)
    given = None if isinstance(scored, Gone) else answers.scores_of(scored)
    scores = quality.capped(given, rules) if given else None
    found = quality.problems(rules, scores)
    for what, answer in (("entities", listed), ("scores", scored)):
        if isinstance(answer, Gone):
            found += (f"no {what} from {measurer.name}: its answer was {answer.outcome}",)
    measures = quality.row(
        evidence.as_json(rules),
        found,
        scores=scores,
        given=given,
        judge=measurer.name,
        meaning=quality.judged_as(measurer, caller.plan.voters[0]),
        entities_by="patterns" if isinstance(listed, Gone) else f"patterns and {measurer.name}",
    )
    return TriedTarget(target, found, measures)


async def measure(
    caller: Caller, claimed: Claimed, measurer: Judge, target: EvidenceTarget, number: int
) -> tuple[Turn | Gone, Turn | Gone]:
    """The measuring judge's entities and scores of one target, asked at the same time. Raises Failed."""
    entity = JudgeQuestion(
        ("entity", number, 0), measurer, writing.entity_prompt(target.evidence), writing.ENTITY_SCHEMA, written=target
    )
    scores = JudgeQuestion(
        ("measure", number, 0),
        measurer,
        writing.measure_prompt(claimed.inputs, target),
        writing.MEASURE_SCHEMA,
        written=target,
    )
    results = await asyncio.gather(_ask(caller, claimed, entity), _ask(caller, claimed, scores), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, FailedTarget)):  # a stop before a failure
        raise error
    listed, scored = results
    return listed, scored  # type: ignore[return-value]  # gather's exceptions are gone


async def _ask(caller: Caller, claimed: Claimed, question: JudgeQuestion) -> Turn | Gone:
    answer = await caller.ask(claimed, question)
    if isinstance(answer, Gone) and answer.outcome == "error":
        raise FailedTarget
    return answer


def whole(inputs: Inputs) -> str:
    """Title and text: what a reader, and a training set, takes for the document."""
    return f"{inputs.title}\n{inputs.document}" if inputs.title else inputs.document


def _row(plan: Plan, claimed: Claimed, tried: TriedTarget, tries: int) -> WrittenRows:
    good = not tried.problems
    target = tried.target or EvidenceTarget("", "")
    return WrittenRows(
        {
            "work": claimed.work,
            "fence": claimed.fence,
            "campaign": plan.campaign,
            "pair": claimed.pair,
            "collection": plan.collection,
            "good": good,
            "contribution": target.contribution,
            "evidence": target.evidence,
            "writer": plan.voters[0].name,
            "measures": {**tried.measures, "tries": tries, "campaign": plan.campaign},
            "priority": LAST
            + priority(plan.order, plan.order_seed, pair_id=claimed.pair, query_id=claimed.query, uncertainty=1.0),
        }
    )
