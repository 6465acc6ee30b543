"""Ask generators for answers, and the judge whether they are right: two steps for each answer, through the engine."""

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
from judges.conversations.formats import ContextAnswer, Correctness
from judges.conversations.requests import Conversation, Step, Subject
from judges.domain.verdicts import NoVerdict
from judges.model_jobs.jobs import hold_conversations
from judges.models import Campaign
from judges.prompts.conversations import CONTEXT_LIMIT, answer_prompt, correct_prompt
from judges.records import Judge
from judges.retrieval.model_requests import Replies


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """A wanted answer: of one generator, to one query, from one run's contexts."""

    query: Query
    run: int
    generator: Judge
    contexts: ShownContexts

    @property
    def subject(self) -> Subject:
        """Return the subject that tells this conversation from all others of the evaluation."""
        return Subject(self.query.pk, self.query.text, f"{self.run} {self.generator.name}")


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer with its verdict. `correct` None: the judge gave no verdict."""

    answer: str
    correct: bool | None
    problem: str = ""


def ask_answers(
    campaign: Campaign, judge: Judge, tasks: Sequence[AnswerTask], lease: Lease, *, done: int, total: int
) -> Replies[JudgedAnswer | None]:
    """Hold all conversations; None without a model, or when limits or the worker end."""
    by_subject = {(one.query.pk, one.subject.topic): one for one in tasks}
    errors: list[str] = []

    # Several systems return the same documents, and several answers are the same: whoever asks what
    # another is asking waits for it, and then finds its answer instead of paying for it again.
    locks: dict[tuple[int, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def talk(conversation: Conversation) -> JudgedAnswer | None:
        subject = conversation.subject
        answer = await _ask_one(conversation, by_subject[subject.query, subject.topic], judge, locks)
        if isinstance(answer, JudgedAnswer):
            return answer
        errors.append(answer)
        return None

    found = hold_conversations(campaign, [one.subject for one in tasks], talk, lease, done=done, total=total)
    found.error = errors[-1] if errors else ""
    return found


async def _ask_one(
    conversation: Conversation, task: AnswerTask, judge: Judge, locks: Mapping[tuple[int, str], asyncio.Lock]
) -> JudgedAnswer | str:
    """Return the answer with its verdict, or why a model could not be reached."""
    query, contexts = task.query.text, task.contexts.shown
    told: Mapping[str, object] = {"query": query, "contexts": [one[:CONTEXT_LIMIT] for one in contexts]}
    step = Step("answer", ContextAnswer, task.generator, answer_prompt(query, contexts), material=told)
    async with locks[step.judge.id, step.prompt.user]:
        said = await conversation.ask(step)
    if isinstance(said, NoVerdict):
        # A generator that was asked and says nothing that is an answer has failed; one that was not reached has not.
        if said.outcome == "error":
            return conversation.problem_with(step)
        return JudgedAnswer("", False, _describe_problem(conversation, step, said))
    told = {"answer": said.Answer, "references": task.query.answers}
    prompt = correct_prompt(query, said.Answer, task.query.answers)
    check = Step("correct", Correctness, judge, prompt, material=told)
    async with locks[check.judge.id, check.prompt.user]:
        verdict = await conversation.ask(check)
    if isinstance(verdict, NoVerdict):
        if verdict.outcome == "error":
            return conversation.problem_with(check)
        return JudgedAnswer(said.Answer, None, _describe_problem(conversation, check, verdict))
    return JudgedAnswer(said.Answer, verdict.correct)


def _describe_problem(conversation: Conversation, step: Step[Any], none: NoVerdict) -> str:
    return f"{none.outcome}: {conversation.problem_with(step) or step.judge.name}"


def store_answers(
    evaluation: AnswerEvaluation, tasks: Sequence[AnswerTask], results: Sequence[JudgedAnswer | None]
) -> int:
    """Write the answers that came, once each. Raises LeaseLost where somebody else holds the evaluation by now."""
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
            answer=found.answer,
            problem=found.problem,
            correct=found.correct,
            is_exact_match=is_exact_match(found.answer, task.query.answers),
        )
        for task, found in zip(tasks, results, strict=True)
        if found is not None
    ]
    # Whoever lost the lease stores nothing: the new holder asks from what is there, and finds paid calls in the cache.
    with transaction.atomic():
        leases.lock_held(evaluation)
        # An answer that another worker stored first stays.
        GeneratedAnswer.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
    return len(rows)
