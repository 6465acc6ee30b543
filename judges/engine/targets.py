"""Training targets of relevant pairs: written, measured, written once more, and otherwise given to a person.

Each step is a slot of the pair, like a turn or a vote, so another worker that continues the pair repeats no call.
"""

import asyncio

from corpus.collections.task_order import LAST, pair_priority
from corpus.evidence import measures as evidence
from corpus.evidence.measures import EvidenceTarget, parse_target
from judges.domain import evidence_quality as quality
from judges.domain.verdicts import NoVerdict
from judges.engine import pairs
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.engine.rows import OutcomeRow
from judges.prompts import writing
from judges.prompts.answers import evidence as answers
from judges.records import Judge, Turn

TRIES = 2  # A target that fails its measures is written once more.


class FailedTarget(Exception):
    """A necessary call failed for good: the pair fails, and may be tried again."""


async def write_target(caller: Caller, claimed: Claimed) -> OutcomeRow:
    """Write and measure the pair's target, twice at most. Raises Cancelled, BudgetExhausted.

    1. Ask the writer. The second try is told what the first one lacked.
    2. Measure the text by rules, and by the measuring judge if the panel has one. Without problems it is done.
    3. Return the row of the last try; its pair goes to a person if problems are left.
    """
    plan = caller.plan
    target: EvidenceTarget | None = None
    problems: tuple[str, ...] = ()
    try:
        for number in range(1, TRIES + 1):
            prompt = writing.write_prompt(claimed.inputs, target, problems)
            question = JudgeQuestion(("write", number, 0), plan.voters[0], prompt, writing.WRITE_SCHEMA)
            answer = await _ask_or_fail(caller, claimed, question)
            if isinstance(answer, NoVerdict):
                target, problems = None, (f"the writer's answer was {answer.outcome}",)
                measures = quality.build_target_document({}, problems)
            else:
                target = parse_target(answer.reason)
                problems, measures = await _measure_attempt(caller, claimed, number, target)
            if not problems:
                break
    except FailedTarget:
        return pairs.build_decision(plan, claimed, pairs.FAILED)
    target = target or EvidenceTarget("", "")
    priority = pair_priority(
        plan.row.collection.order,
        plan.row.collection.seed,
        pair_id=claimed.pair,
        query_id=claimed.query,
        uncertainty=1.0,
    )
    return OutcomeRow(
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
            "measures": {**measures, "tries": number, "campaign": plan.campaign},
            # After all other tasks: a label is more urgent than a text.
            "priority": LAST + priority,
        },
        is_target=True,
    )


async def _measure_attempt(
    caller: Caller, claimed: Claimed, number: int, target: EvidenceTarget
) -> tuple[tuple[str, ...], quality.TargetDocument]:
    """Return the problems of a target, and its measures."""
    document = claimed.inputs.titled_document
    measurer = caller.plan.voters[1] if len(caller.plan.voters) > 1 else None
    # Without a measuring judge rules alone decide, and names are found by patterns.
    if measurer is None:
        rules = evidence.measure_target(target, query=claimed.inputs.query, document=document)
        problems = quality.find_problems(rules)
        return problems, quality.build_target_document(evidence.as_json(rules), problems)
    entity_answer, score_answer = await measure_target(caller, claimed, measurer, target, number)
    entities = [] if isinstance(entity_answer, NoVerdict) else answers.entities_of(entity_answer)
    rules = evidence.measure_target(target, query=claimed.inputs.query, document=document, model_entities=entities)
    raw_scores = None if isinstance(score_answer, NoVerdict) else answers.scores_of(score_answer)
    rating = None
    if raw_scores:
        rating = quality.TargetRating(
            judge=measurer.name,
            meaning=quality.meaning_of_scores(measurer, caller.plan.voters[0]),
            judge_scores=raw_scores,
            # The judge may overlook an altered number, which the rules find.
            capped_scores=quality.cap_scores(raw_scores, rules),
        )
    problems = quality.find_problems(rules, rating.capped_scores if rating else None)
    for kind, answer in (("entities", entity_answer), ("scores", score_answer)):
        if isinstance(answer, NoVerdict):
            problems += (f"no {kind} from {measurer.name}: its answer was {answer.outcome}",)
    measures = quality.build_target_document(
        evidence.as_json(rules),
        problems,
        rating=rating,
        entities_by="patterns" if isinstance(entity_answer, NoVerdict) else f"patterns and {measurer.name}",
    )
    return problems, measures


async def measure_target(
    caller: Caller,
    claimed: Claimed,
    measurer: Judge,
    target: EvidenceTarget,
    number: int,
    lister: Judge | None = None,
) -> tuple[Turn | NoVerdict, Turn | NoVerdict]:
    """Ask the measuring judge for the entities and scores of a target, at the same time. Raises FailedTarget.

    `lister`: another judge, which lists the entities in its place.
    """
    prompt, scoring = writing.entity_prompt(target.evidence), writing.measure_prompt(claimed.inputs, target)
    entity = JudgeQuestion(("entity", number, 0), lister or measurer, prompt, writing.ENTITY_SCHEMA, written=target)
    scores = JudgeQuestion(("measure", number, 0), measurer, scoring, writing.MEASURE_SCHEMA, written=target)
    results = await asyncio.gather(
        _ask_or_fail(caller, claimed, entity), _ask_or_fail(caller, claimed, scores), return_exceptions=True
    )
    errors = [result for result in results if isinstance(result, BaseException)]
    # An interruption is raised before a failure: the pair is released then, and not marked as failed.
    for error in sorted(errors, key=lambda error: isinstance(error, FailedTarget)):
        raise error
    entity_answer, score_answer = results
    return entity_answer, score_answer  # type: ignore[return-value]  # gather's exceptions are gone


async def _ask_or_fail(caller: Caller, claimed: Claimed, question: JudgeQuestion) -> Turn | NoVerdict:
    answer = await caller.ask(claimed, question)
    if isinstance(answer, NoVerdict) and answer.outcome == "error":
        raise FailedTarget
    return answer
