"""The conversation that makes a bundle of a seed: persona, type, answer, aspects, plans and passages (BRIGHT-Pro 5.1).

An analytical query gets a reference answer from nothing but the query, two or three aspects that
carry it, and a positive for each; a factual one a single positive. Negatives are planned from
titles and summaries of the positives.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from benchmark.synthesis.bundles import Bundle, find_near_copies, query_id_of
from judges.conversations import synthesis as formats
from judges.conversations.base import AnswerFormat
from judges.conversations.requests import Conversation, Step
from judges.domain.verdicts import NoVerdict
from judges.prompts import synthesis as prompts
from judges.records import Judge, Prompt

NEAR_DUPLICATE = "near-duplicate"
F = TypeVar("F", bound=AnswerFormat)


@dataclass(frozen=True, slots=True)
class SeedTask:
    """A seed with its options: personas shown, the answering judge, the passages' writer."""

    seed_id: str
    seed: str
    personas: tuple[str, ...]
    judge: Judge
    writer: Judge
    instruction: str


@dataclass(frozen=True, slots=True)
class SeedOutcome:
    """The outcome of a seed: a bundle, or the step that brought nothing and why."""

    bundle: Bundle | None = None
    step: str = ""
    reason: str = ""
    problem: str = ""
    near_duplicates: int = 0


class StepFailed(Exception):
    """A step without an answer: the bundle is dropped."""

    def __init__(self, step: str, reason: str, problem: str) -> None:
        super().__init__(step)
        self.outcome = SeedOutcome(step=step, reason=reason, problem=problem)


@dataclass(slots=True)
class BundleWriter:
    """Asks the steps of one seed, and notes which prompts it asked with."""

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
        """The answer to a step. Raises StepFailed where there is none."""
        # By name and hash, as they were asked: a bundle says what it was made with.
        self.prompts[prompt.name] = prompt.sha256
        judge = self.task.writer if role == "compose" else self.task.judge
        step = Step(role, form, judge, prompt, number, expected=expected or {}, material=material)
        said = await self.conversation.ask(step)
        if isinstance(said, NoVerdict):
            raise StepFailed(role, said.outcome, self.conversation.problem_with(step))
        return said

    async def write_bundle(self) -> SeedOutcome:
        """Ask step after step; raises StepFailed."""
        task = self.task
        told = await self.ask(
            "persona",
            formats.PersonaQuery,
            prompts.persona_prompt(task.seed, task.personas),
            {"query": task.seed},
            {"personas": list(task.personas)},
        )
        query = f"{told.question}\n{told.background}"
        shown = {"query": query}
        kind = await self.ask("classify", formats.QueryType, prompts.query_prompt("synth-classify", query), shown)
        answer, aspects = "", list[dict[str, str]]()
        # One passage answers a factual question, so there is nothing to decompose.
        if kind.type == "analytical":
            answer, aspects = await self._decompose_answer(query)
        positives = await self._plan_positives(query, answer, aspects)
        negatives = await self._plan_negatives(query, positives)
        # Positives and negatives are written in two calls, so that neither sees the other.
        texts = await self._write_passages(query, positives, 0), await self._write_passages(query, negatives, 1)
        copies = find_near_copies(*texts)
        # A bundle without a negative teaches nothing about what is not relevant.
        if len(copies) == len(negatives):
            raise StepFailed("compose", NEAR_DUPLICATE, "every negative nearly equals a positive")
        bundle = {
            "query_id": query_id_of(task.seed_id, query),
            "persona": told.persona,
            "query": query,
            "type": kind.type,
            "answer": answer,
            "aspects": aspects,
            "positives": [
                {"aspect": aspect, "blueprint": plan, "text": text}
                for aspect, plan, text in zip(_names_of(aspects), positives, texts[0], strict=True)
            ],
            "negatives": [
                {"missing_aspect": plan["missing_aspect"], "blueprint": plan, "text": text}
                for place, (plan, text) in enumerate(zip(negatives, texts[1], strict=True))
                if place not in copies
            ],
            "synthetic": True,
            "instruction": task.instruction,
            "seed": {"query_id": task.seed_id, "query": task.seed},
            "models": {"judge": describe_model(task.judge), "writer": describe_model(task.writer)},
            "prompts": dict(sorted(self.prompts.items())),
        }
        return SeedOutcome(bundle, near_duplicates=len(copies))

    async def _decompose_answer(self, query: str) -> tuple[str, list[dict[str, str]]]:
        shown, outline = {"query": query}, prompts.query_prompt("synth-outline", query)
        said = await self.ask("outline", formats.ReferenceAnswer, outline, shown)
        prompt, material = prompts.decompose_prompt(query, said.answer), {"query": query, "answer": said.answer}
        found = await self.ask("decompose", formats.Decomposition, prompt, material)
        return said.answer, [one.model_dump() for one in found.aspects]

    async def _plan_positives(self, query: str, answer: str, aspects: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        prompt, material = prompts.blueprint_prompt(query, answer, aspects), {"query": query, "aspects": aspects}
        found = await self.ask(
            # A factual query has one positive and no aspects.
            "blueprint",
            formats.PositiveBlueprints,
            prompt,
            material,
            {"count": max(1, len(aspects))},
        )
        return [one.model_dump() for one in found.blueprints]

    async def _plan_negatives(self, query: str, positives: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        expected = {"count": len(positives), "titles": [one["title"] for one in positives]}
        prompt, material = prompts.negatives_prompt(query, positives), {"query": query, "positives": positives}
        found = await self.ask("negatives", formats.NegativeBlueprints, prompt, material, expected)
        return [one.model_dump() for one in found.blueprints]

    async def _write_passages(self, query: str, plans: Sequence[dict[str, str]], number: int) -> list[str]:
        """Have the positives (0) or the negatives (1) written, in a call that does not show the others' passages."""
        prompt, material = prompts.compose_prompt(plans), {"query": query, "plans": plans}
        found = await self.ask("compose", formats.Passages, prompt, material, {"count": len(plans)}, number)
        return found.passages


def _names_of(aspects: Sequence[dict[str, str]]) -> list[str]:
    """The aspect of each positive; the only one of a factual query has none."""
    return [one["aspect"] for one in aspects] or [""]


def describe_model(judge: Judge) -> dict[str, str]:
    """A judge in what is written of it into a bundle."""
    return {"name": judge.name, "provider": judge.provider, "model": judge.model}


async def write_bundle(conversation: Conversation, task: SeedTask) -> SeedOutcome:
    """A seed's bundle, or where and why it was dropped. Cancelled, BudgetExhausted pass."""
    try:
        return await BundleWriter(conversation, task).write_bundle()
    except StepFailed as failed:
        return failed.outcome
