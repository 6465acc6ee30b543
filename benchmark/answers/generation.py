"""Answers by generators and the judge's verdicts about them: two calls for each answer, through the engine."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from benchmark.answers.contexts import ShownContexts
from benchmark.answers.exact_match import is_exact_match
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from corpus.models import Query
from jobs import leases
from jobs.leases import Lease
from judges.conversations.requests import Conversation, ConversationStep, Subject
from judges.domain.verdicts import NoVerdict
from judges.model_jobs.jobs import hold_conversations
from judges.models import Campaign
from judges.prompts.answers.formats import ContextAnswer, Correctness
from judges.prompts.conversations import CONTEXT_LIMIT, answer_prompt, correct_prompt
from judges.records import Judge
from judges.retrieval.model_requests import Replies


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """An answer to ask for: by one generator, to one query, from the contexts of one run."""

    query: Query
    run: int
    generator: Judge
    contexts: ShownContexts

    @property
    def subject(self) -> Subject:
        """The subject that identifies this conversation within the evaluation."""
        return Subject(self.query.pk, self.query.text, f"{self.run} {self.generator.name}")


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer with its verdict; `correct` is None if the judge gave none."""

    answer: str
    correct: bool | None
    problem: str = ""


def ask_answers(
    campaign: Campaign, judge: Judge, tasks: Sequence[AnswerTask], lease: Lease, *, done: int, total: int
) -> Replies[JudgedAnswer | None]:
    """Ask for all answers and verdicts; an answer is None if a model was unreachable or the limits were reached.

    In each conversation:
    1. The generator answers the query from its contexts.
    2. The judge compares the answer with the reference answers.
    """
    by_subject = {(task.query.pk, task.subject.topic): task for task in tasks}
    errors: list[str] = []

    # Several systems may return the same documents, and several answers may be the same: a request
    # that equals one in flight waits for it, and then finds its reply in the cache instead of paying again.
    locks: dict[tuple[int, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def hold(conversation: Conversation) -> JudgedAnswer | None:
        task = by_subject[conversation.subject.query, conversation.subject.topic]
        query, contexts = task.query.text, task.contexts.shown
        material: Mapping[str, object] = {"query": query, "contexts": [text[:CONTEXT_LIMIT] for text in contexts]}
        step = ConversationStep(
            "answer", ContextAnswer, task.generator, answer_prompt(query, contexts), material=material
        )
        async with locks[step.judge.id, step.prompt.user]:
            reply = await conversation.ask(step)
        if isinstance(reply, NoVerdict):
            # A generator that replied without an answer has failed; one that could not be reached has not.
            if reply.outcome == "error":
                errors.append(conversation.problem_with(step))
                return None
            return JudgedAnswer("", False, _describe_problem(conversation, step, reply))
        material = {"answer": reply.Answer, "references": task.query.answers}
        prompt = correct_prompt(query, reply.Answer, task.query.answers)
        check = ConversationStep("correct", Correctness, judge, prompt, material=material)
        async with locks[check.judge.id, check.prompt.user]:
            verdict = await conversation.ask(check)
        if isinstance(verdict, NoVerdict):
            if verdict.outcome == "error":
                errors.append(conversation.problem_with(check))
                return None
            return JudgedAnswer(reply.Answer, None, _describe_problem(conversation, check, verdict))
        return JudgedAnswer(reply.Answer, verdict.correct)

    replies = hold_conversations(campaign, [task.subject for task in tasks], hold, lease, done=done, total=total)
    replies.error = errors[-1] if errors else ""
    return replies


def _describe_problem(conversation: Conversation, step: ConversationStep[Any], no_verdict: NoVerdict) -> str:
    return f"{no_verdict.outcome}: {conversation.problem_with(step) or step.judge.name}"


def store_answers(
    evaluation: AnswerEvaluation, tasks: Sequence[AnswerTask], results: Sequence[JudgedAnswer | None]
) -> int:
    """Store the answers, each once, and return their number. Raises LeaseLost if another worker took over."""
    rows = [
        GeneratedAnswer(
            evaluation=evaluation,
            query=task.query,
            run_id=task.run,
            generator=task.generator.name,
            documents=list(task.contexts.documents),
            evidence=list(task.contexts.evidence),
            without_evidence=task.contexts.left_out,
            document_length=task.contexts.document_length,
            context_length=task.contexts.context_length,
            answer=answer.answer,
            problem=answer.problem,
            correct=answer.correct,
            is_exact_match=is_exact_match(answer.answer, task.query.answers),
        )
        for task, answer in zip(tasks, results, strict=True)
        if answer is not None
    ]
    # A worker that lost its lease stores nothing: its successor finds the paid calls in the cache.
    with transaction.atomic():
        leases.lock_held(evaluation)
        # An answer that another worker stored first is kept.
        GeneratedAnswer.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
    return len(rows)
