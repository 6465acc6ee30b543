"""Holding conversations with judges: many at a time, each with one step after another.

Every step passes through the engine like a judgment: limits of the account, retries, one repair, budgets and spending
limits, the raw answer stored before it is used, its cost in the ledger. The calls belong to one campaign (policy
`retrieval`, opened with judges.retrieval.model_requests.open_campaign). The campaign's earlier answers are reused, also
after a kill: `converse` starts again from its beginning without paying twice, so it must ask the same questions if it
gets the same answers.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from judges.domain.verdicts import NoVerdict
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.answers.base import AnswerFormat
from judges.prompts.answers.formats import FORMATS, schema_of
from judges.prompts.searching import plain_prompt
from judges.records import CONVERSATIONS, Judge, Prompt, Turn
from judges.retrieval.model_requests import Replies, ask_each, claim

F = TypeVar("F", bound=AnswerFormat)
T = TypeVar("T")
AT_ONCE = 64  # Conversations at the same time.


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a conversation. `query`: its primary key; `topic`: distinguishes several subjects of a query."""

    query: int
    text: str
    topic: str = ""
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class ConversationStep(Generic[F]):
    """Question of a conversation. `number`: counts several of the same role, from 0."""

    role: str
    form: type[F]
    judge: Judge
    prompt: Prompt
    number: int = 0
    key_sample: int = 0  # Above 0 for another sample of the answer to a question that was answered before.
    expected: Mapping[str, Any] = field(default_factory=dict)  # Context of the format's validators; small, JSON.
    material: Mapping[str, Any] = field(default_factory=dict)  # The prompt's contents, for offline judges.


class Conversation:
    """A conversation about one subject, in which `converse` asks its steps."""

    def __init__(self, caller: Caller, claimed: Claimed, subject: Subject) -> None:
        self._caller, self._claimed, self.subject = caller, claimed, subject

    async def ask(self, step: ConversationStep[F]) -> F | NoVerdict:
        """Return the answer to a step, or NoVerdict if there is none after retries and one repair.

        Raises Cancelled and BudgetExhausted, which end the conversation and must not be caught.
        """
        # A role has only one format, so that a stored answer can be read without knowing who asked.
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
        turn = await self._caller.ask(self._claimed, question)
        return step.form.model_validate_json(turn.reason) if isinstance(turn, Turn) else turn

    async def embed(self, judge: Judge, text: str, number: int, keep: Callable[[Turn], None]) -> NoVerdict | None:
        """Ask an embedding model for a text's vector, which `keep` receives; return NoVerdict if there is none.

        `number`: counts several texts, from 0. Raises Cancelled and BudgetExhausted, like `ask`.
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
        turn = await self._caller.ask(self._claimed, question)
        return turn if isinstance(turn, NoVerdict) else None

    def problem_with(self, step: ConversationStep[F]) -> str:
        """Explain why a step has no answer: its last problem, or the provider's last error."""
        return self._claimed.problems.get((step.role, 0, step.number), "") or self._claimed.last_error


def hold_conversations(
    campaign: Campaign,
    subjects: Sequence[Subject],
    converse: Callable[[Conversation], Awaitable[T]],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    done: Callable[[int], None] = lambda count: None,
    at_once: int = AT_ONCE,
) -> Replies[T]:
    """Hold a conversation about each subject; the pair of query and topic is unique among them.

    `converse` holds one conversation and returns its result. `done` is called with the number of conversations that
    have ended.
    """
    claimed_subjects = [
        claim(campaign, position, subject.query, subject.text, subject.instruction)
        for position, subject in enumerate(subjects)
    ]
    # Put this campaign's earlier answers, including unusable ones, back into their slots.
    queries = {subject.query for subject in subjects}
    rows = RetrievalCall.objects.filter(campaign=campaign, query__in=queries, role__in=CONVERSATIONS).order_by("id")
    slots: dict[tuple[int, str], list[tuple[str, int, str, str, str]]] = defaultdict(list)
    for query, topic, *row in rows.values_list("query", "topic", "role", "sample", "outcome", "text", "error"):
        slots[cast(int, query), topic].append(cast(tuple[str, int, str, str, str], tuple(row)))
    for claimed, subject in zip(claimed_subjects, subjects, strict=True):
        for role, sample, outcome, text, error in slots.get((subject.query, subject.topic), ()):
            slot = (role, 0, sample)
            if outcome == "labelled":
                # The latest answer of a slot counts.
                claimed.ended[slot] = Turn(1, text)
            elif outcome in ("refused", "truncated", "prompt_cut") or (
                outcome == "unparsed" and slot in claimed.problems
            ):
                # setdefault, because an answer remains valid even if a later call was refused.
                claimed.ended.setdefault(slot, NoVerdict(outcome))
            elif outcome == "unparsed":  # The process ended before it asked for a repair.
                claimed.problems[slot], claimed.tries[slot] = error, 1

    async def ask(caller: Caller, claimed: Claimed) -> T:
        return await converse(Conversation(caller, claimed, subjects[claimed.work]))

    return ask_each(campaign, claimed_subjects, ask, should_stop=should_stop, done=done, at_once=at_once)
