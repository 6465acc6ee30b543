"""Hold conversations with judges: many at a time, each step after the one before.

Every step goes through the engine as judging does: limits of the account, retries, one repair,
budget and caps, the raw answer stored before it is used, its cost in the ledger. The calls belong
to one campaign (policy `retrieval`, opened with judges.retrieval.model_requests.open_campaign).
What that campaign was answered before is taken from there, also after a kill, so that `talk` runs
again from its beginning and pays for nothing twice: it must ask the same questions when it gets the
same answers.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from judges.conversations.base import AnswerFormat
from judges.conversations.formats import FORMATS, schema_of
from judges.domain.verdicts import NoVerdict
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.searching import plain_prompt
from judges.records import CONVERSATIONS, Judge, Prompt, Turn
from judges.retrieval.model_requests import Replies, ask_each, claim

F = TypeVar("F", bound=AnswerFormat)
T = TypeVar("T")
AT_ONCE = 64  # Conversations that go on together.


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a conversation. `query`: its primary key; `topic`: what else tells it from others of the query."""

    query: int
    text: str
    topic: str = ""
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class Step(Generic[F]):
    """Question of a conversation. `number`: which of several of this role, from 0."""

    role: str
    form: type[F]
    judge: Judge
    prompt: Prompt
    number: int = 0
    key_sample: int = 0  # Above 0 for an answer that shall be drawn anew though an equal question was answered.
    expected: Mapping[str, Any] = field(default_factory=dict)  # What validators of the format read; small, JSON.
    material: Mapping[str, Any] = field(default_factory=dict)  # What the prompt is made of, for offline judges.


class Conversation:
    """Steps of one subject, through which `talk` asks."""

    def __init__(self, caller: Caller, claimed: Claimed, subject: Subject) -> None:
        self._caller, self._claimed, self.subject = caller, claimed, subject

    async def ask(self, step: Step[F]) -> F | NoVerdict:
        """The answer, or the statement that there is none after retries and one repair.

        Raises Cancelled and BudgetExhausted, which end the conversation: let them through.
        """
        # A role has one format, so that a stored answer can be read without knowing who asked.
        assert FORMATS[step.role] is step.form, step.role
        question = JudgeQuestion(
            (step.role, 0, step.number),
            step.judge,
            step.prompt,
            schema_of(step.form),
            step.key_sample,
            topic=self.subject.topic,
            expected=step.expected,
            material=step.material,
        )
        found = await self._caller.ask(self._claimed, question)
        return step.form.model_validate_json(found.reason) if isinstance(found, Turn) else found

    async def embed(self, judge: Judge, text: str, number: int, keep: Callable[[Turn], None]) -> NoVerdict | None:
        """Ask an embedder for a text's vector, which `keep` takes. `number`: which of several, from 0.

        Raises Cancelled and BudgetExhausted, as `ask` does.
        """
        question = JudgeQuestion(
            ("embed", 0, number),
            judge,
            plain_prompt("embed", [text]),
            {},
            documents=(text,),
            topic=self.subject.topic,
            keep=keep,
        )
        found = await self._caller.ask(self._claimed, question)
        return found if isinstance(found, NoVerdict) else None

    def problem_with(self, step: Step[F]) -> str:
        """Return why a step has no answer: its last problem, or the provider's last error."""
        return self._claimed.problems.get((step.role, 0, step.number), "") or self._claimed.last_error


def hold_conversations(
    campaign: Campaign,
    subjects: Sequence[Subject],
    talk: Callable[[Conversation], Awaitable[T]],
    *,
    stopped: Callable[[], bool] = lambda: False,
    done: Callable[[int], None] = lambda count: None,
    at_once: int = AT_ONCE,
) -> Replies[T]:
    """Hold a conversation about each subject (query and topic together occur once). `done` is told how many ended."""
    held = [claim(campaign, place, one.query, one.text, one.instruction) for place, one in enumerate(subjects)]
    _restore_answers(campaign, subjects, held)

    async def ask(caller: Caller, claimed: Claimed) -> T:
        return await talk(Conversation(caller, claimed, subjects[claimed.work]))

    return ask_each(campaign, held, ask, stopped=stopped, done=done, at_once=at_once)


def _restore_answers(campaign: Campaign, subjects: Sequence[Subject], held: Iterable[Claimed]) -> None:
    """Restore this campaign's earlier answers, unusable ones too, to their places."""
    wanted = {one.query for one in subjects}
    rows = RetrievalCall.objects.filter(campaign=campaign, query__in=wanted, role__in=CONVERSATIONS).order_by("id")
    slots: dict[tuple[int, str], list[tuple[str, int, str, str, str]]] = defaultdict(list)
    for query, topic, *row in rows.values_list("query", "topic", "role", "sample", "outcome", "text", "error"):
        slots[cast(int, query), topic].append(cast(tuple[str, int, str, str, str], tuple(row)))
    for claimed, subject in zip(held, subjects, strict=True):
        for role, sample, outcome, text, error in slots.get((subject.query, subject.topic), ()):
            slot = (role, 0, sample)
            if outcome == "labelled":
                # The latest answer of a slot holds.
                claimed.ended[slot] = Turn(1, text)
            elif outcome in ("refused", "truncated", "prompt_cut") or (
                outcome == "unparsed" and slot in claimed.problems
            ):
                # setdefault: an answer stays, whatever was refused after it.
                claimed.ended.setdefault(slot, NoVerdict(outcome))
            elif outcome == "unparsed":  # its repair was not asked for before the end
                claimed.problems[slot], claimed.tries[slot] = error, 1
