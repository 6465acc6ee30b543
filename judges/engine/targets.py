"""Targets of relevant pairs: written, measured, written once more, else given to a person.

Each step is a slot of the pair like a turn or a vote: counted attempts are not asked again, whoever goes on with them.
"""

import asyncio
from typing import Any

from corpus.collections.task_order import LAST, pair_priority
from corpus.evidence import measures as evidence
from corpus.evidence.measures import EvidenceTarget, parse_target
from judges.domain.verdicts import NoVerdict
from judges.engine import pairs
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.engine.plan import Plan
from judges.engine.rows import Decided
from judges.evidence import answers, quality
from judges.prompts import writing
from judges.records import Judge, Turn

TRIES = 2  # What fails its measures is written anew once.


class FailedTarget(Exception):
    """A call that is needed failed for good: the pair failed and may be tried again."""


# One try: what was written, if anything, what is wrong with it, and its measures.
_Attempt = tuple[EvidenceTarget | None, tuple[str, ...], dict[str, Any]]


async def write_target(caller: Caller, claimed: Claimed) -> Decided:
    """Ask the writer and measure. Raises Cancelled, BudgetExhausted."""
    tried: _Attempt = (None, (), {})
    try:
        for number in range(1, TRIES + 1):
            earlier, problems, _measures = tried
            # The second try is told what the first one lacked.
            prompt = writing.write_prompt(claimed.inputs, earlier, problems)
            question = JudgeQuestion(("write", number, 0), caller.plan.voters[0], prompt, writing.WRITE_SCHEMA)
            said = await _ask_or_fail(caller, claimed, question)
            if isinstance(said, NoVerdict):
                words = f"the writer's answer was {said.outcome}"
                tried = None, (words,), quality.target_measures({}, (words,))
            else:
                tried = await _measure_attempt(caller, claimed, number, parse_target(said.reason))
            if not tried[1]:
                break
    except FailedTarget:
        return pairs.build_decision(caller.plan, claimed, pairs.FAILED)
    return _target_row(caller.plan, claimed, tried, number)


async def _measure_attempt(caller: Caller, claimed: Claimed, number: int, target: EvidenceTarget) -> _Attempt:
    document = claimed.inputs.titled_document
    measurer = caller.plan.voters[1] if len(caller.plan.voters) > 1 else None
    # Without a measuring judge rules alone decide, and names are found by patterns.
    if measurer is None:
        rules = evidence.measure_target(target, query=claimed.inputs.query, document=document)
        found = quality.find_problems(rules)
        return target, found, quality.target_measures(evidence.as_json(rules), found)
    listed, scored = await measure_target(caller, claimed, measurer, target, number)
    named = [] if isinstance(listed, NoVerdict) else answers.entities_of(listed)
    rules = evidence.measure_target(target, query=claimed.inputs.query, document=document, named=named)
    given = None if isinstance(scored, NoVerdict) else answers.scores_of(scored)
    # A judge that overlooks an altered number does not make it right: rules cap its scores.
    scores = quality.cap_scores(given, rules) if given else None
    found = quality.find_problems(rules, scores)
    for what, answer in (("entities", listed), ("scores", scored)):
        if isinstance(answer, NoVerdict):
            found += (f"no {what} from {measurer.name}: its answer was {answer.outcome}",)
    measures = quality.target_measures(
        evidence.as_json(rules),
        found,
        scores=scores,
        original_scores=given,
        judge=measurer.name,
        meaning=quality.judged_as(measurer, caller.plan.voters[0]),
        entities_by="patterns" if isinstance(listed, NoVerdict) else f"patterns and {measurer.name}",
    )
    return target, found, measures


async def measure_target(
    caller: Caller,
    claimed: Claimed,
    measurer: Judge,
    target: EvidenceTarget,
    number: int,
    lister: Judge | None = None,
) -> tuple[Turn | NoVerdict, Turn | NoVerdict]:
    """Ask the measuring judge for entities and scores of one target, at the same time. Raises FailedTarget.

    `lister`: another judge that lists the entities.
    """
    prompt, scoring = writing.entity_prompt(target.evidence), writing.measure_prompt(claimed.inputs, target)
    entity = JudgeQuestion(("entity", number, 0), lister or measurer, prompt, writing.ENTITY_SCHEMA, written=target)
    scores = JudgeQuestion(("measure", number, 0), measurer, scoring, writing.MEASURE_SCHEMA, written=target)
    results = await asyncio.gather(
        _ask_or_fail(caller, claimed, entity), _ask_or_fail(caller, claimed, scores), return_exceptions=True
    )
    errors = [result for result in results if isinstance(result, BaseException)]
    # An interruption goes before a failure: the pair is put back then, and not marked as failed.
    for error in sorted(errors, key=lambda error: isinstance(error, FailedTarget)):  # a stop before a failure
        raise error
    listed, scored = results
    return listed, scored  # type: ignore[return-value]  # gather's exceptions are gone


async def _ask_or_fail(caller: Caller, claimed: Claimed, question: JudgeQuestion) -> Turn | NoVerdict:
    answer = await caller.ask(claimed, question)
    if isinstance(answer, NoVerdict) and answer.outcome == "error":
        raise FailedTarget
    return answer


def _target_row(plan: Plan, claimed: Claimed, tried: _Attempt, tries: int) -> Decided:
    target, problems, measures = tried
    target = target or EvidenceTarget("", "")
    place = pair_priority(
        plan.row.collection.order,
        plan.row.collection.seed,
        pair_id=claimed.pair,
        query_id=claimed.query,
        uncertainty=1.0,
    )
    return Decided(
        {
            "work": claimed.work,
            "fence": claimed.fence,
            "campaign": plan.campaign,
            "pair": claimed.pair,
            "collection": plan.collection,
            "good": not problems,
            "contribution": target.contribution,
            "evidence": target.evidence,
            "writer": plan.voters[0].name,
            "measures": {**measures, "tries": tries, "campaign": plan.campaign},
            # Behind all other tasks: nobody waits for a text as for a label.
            "priority": LAST + place,
        },
        is_target=True,
    )
