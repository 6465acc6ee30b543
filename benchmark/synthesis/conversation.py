"""The conversation that turns a seed into a bundle: persona, type, answer, aspects, plans, passages (BRIGHT-Pro 5.1).

An analytical query gets a reference answer written from the query alone, two or three aspects of
that answer, and a positive for each aspect; a factual query gets a single positive. Negatives are
planned from the titles and summaries of the positives.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from benchmark.synthesis.bundles import Bundle, find_near_copies, query_id_of
from judges.conversations.requests import Conversation, ConversationStep
from judges.domain.verdicts import NoVerdict
from judges.prompts import synthesis as prompts
from judges.prompts.answers import synthesis as formats
from judges.prompts.answers.base import AnswerFormat
from judges.records import Judge, Prompt

NEAR_DUPLICATE = "near-duplicate"
F = TypeVar("F", bound=AnswerFormat)


@dataclass(frozen=True, slots=True)
class SeedTask:
    """A seed with its options: example personas, the judge of all steps, and the writer of the passages."""

    seed_id: str
    seed: str
    personas: tuple[str, ...]
    judge: Judge
    writer: Judge
    instruction: str


@dataclass(frozen=True, slots=True)
class SeedOutcome:
    """The outcome of a seed: a bundle, or the step that failed and the reason."""

    bundle: Bundle | None = None
    step: str = ""
    reason: str = ""
    problem: str = ""
    near_duplicates: int = 0


class StepFailed(Exception):
    """A step has no usable answer, so the bundle is dropped."""

    def __init__(self, step: str, reason: str, problem: str) -> None:
        super().__init__(step)
        self.outcome = SeedOutcome(step=step, reason=reason, problem=problem)


@dataclass(slots=True)
class BundleWriter:
    """The steps of one seed, with the hashes of the prompts that were sent."""

    conversation: Conversation
    task: SeedTask
    prompts: dict[str, str] = field(default_factory=dict)

    async def ask(
        self,
        role: str,
        form: type[F],
        prompt: Prompt,
        material: Mapping[str, Any],
        expected: Mapping[str, Any] | None = None,
        number: int = 0,
    ) -> F:
        """Ask one step and return its answer. Raises StepFailed if there is none."""
        # A bundle records the prompts that it was made with.
        self.prompts[prompt.name] = prompt.sha256
        judge = self.task.writer if role == "compose" else self.task.judge
        step = ConversationStep(role, form, judge, prompt, number, expected=expected or {}, material=material)
        reply = await self.conversation.ask(step)
        if isinstance(reply, NoVerdict):
            raise StepFailed(role, reply.outcome, self.conversation.problem_with(step))
        return reply

    async def write_bundle(self) -> SeedOutcome:
        """Write the bundle of the seed. Raises StepFailed.

        1. A persona and its query, written from the seed.
        2. The type of the query; for an analytical one a reference answer and its aspects.
        3. Plans of the positives, then of the negatives.
        4. The passages; negatives that are near-duplicates of a positive are dropped.
        """
        task = self.task
        persona = await self.ask(
            "persona",
            formats.PersonaQuery,
            prompts.persona_prompt(task.seed, task.personas),
            {"query": task.seed},
            {"personas": list(task.personas)},
        )
        query = f"{persona.question}\n{persona.background}"
        classify, material = prompts.query_prompt("synth-classify", query), {"query": query}
        kind = await self.ask("classify", formats.QueryType, classify, material)
        answer, aspects = "", list[dict[str, str]]()
        # One passage answers a factual query, so there is nothing to decompose.
        if kind.type == "analytical":
            outline = prompts.query_prompt("synth-outline", query)
            answer = (await self.ask("outline", formats.ExpertAnswer, outline, material)).answer
            decompose = prompts.decompose_prompt(query, answer)
            material = {"query": query, "answer": answer}
            decomposition = await self.ask("decompose", formats.Decomposition, decompose, material)
            aspects = [aspect.model_dump() for aspect in decomposition.aspects]
        positives = await self._plan_positives(query, answer, aspects)
        negatives = await self._plan_negatives(query, positives)
        # Positives and negatives are written in two calls, so that neither sees the other.
        texts = await self._write_passages(query, positives, 0), await self._write_passages(query, negatives, 1)
        copies = find_near_copies(*texts)
        # A bundle needs at least one negative.
        if len(copies) == len(negatives):
            raise StepFailed("compose", NEAR_DUPLICATE, "every negative nearly equals a positive")
        # The only positive of a factual query has no aspect.
        aspect_names = [aspect["aspect"] for aspect in aspects] or [""]
        bundle = {
            "query_id": query_id_of(task.seed_id, query),
            "persona": persona.persona,
            "query": query,
            "type": kind.type,
            "answer": answer,
            "aspects": aspects,
            "positives": [
                {"aspect": aspect, "blueprint": plan, "text": text}
                for aspect, plan, text in zip(aspect_names, positives, texts[0], strict=True)
            ],
            "negatives": [
                {"missing_aspect": plan["missing_aspect"], "blueprint": plan, "text": text}
                for position, (plan, text) in enumerate(zip(negatives, texts[1], strict=True))
                if position not in copies
            ],
            "synthetic": True,
            "instruction": task.instruction,
            "seed": {"query_id": task.seed_id, "query": task.seed},
            "models": {"judge": describe_model(task.judge), "writer": describe_model(task.writer)},
            "prompts": dict(sorted(self.prompts.items())),
        }
        return SeedOutcome(bundle, near_duplicates=len(copies))

    async def _plan_positives(self, query: str, answer: str, aspects: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        prompt, material = prompts.blueprint_prompt(query, answer, aspects), {"query": query, "aspects": aspects}
        # A factual query has one positive and no aspects.
        expected = {"count": max(1, len(aspects))}
        reply = await self.ask("blueprint", formats.PositiveBlueprints, prompt, material, expected)
        return [plan.model_dump() for plan in reply.blueprints]

    async def _plan_negatives(self, query: str, positives: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        expected = {"count": len(positives), "titles": [plan["title"] for plan in positives]}
        prompt, material = prompts.negatives_prompt(query, positives), {"query": query, "positives": positives}
        reply = await self.ask("negatives", formats.NegativeBlueprints, prompt, material, expected)
        return [plan.model_dump() for plan in reply.blueprints]

    async def _write_passages(self, query: str, plans: Sequence[dict[str, str]], number: int) -> list[str]:
        """Have the positives (`number` 0) or the negatives (1) written."""
        prompt, material = prompts.compose_prompt(plans), {"query": query, "plans": plans}
        reply = await self.ask("compose", formats.Passages, prompt, material, {"count": len(plans)}, number)
        return reply.passages


def describe_model(judge: Judge) -> dict[str, str]:
    """Return the description of a judge that a bundle records."""
    return {"name": judge.name, "provider": judge.provider, "model": judge.model}


async def write_bundle(conversation: Conversation, task: SeedTask) -> SeedOutcome:
    """Return a seed's bundle, or where and why it was dropped. Raises Cancelled and BudgetExhausted."""
    try:
        return await BundleWriter(conversation, task).write_bundle()
    except StepFailed as error:
        return error.outcome
