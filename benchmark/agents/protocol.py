"""The search protocols of an agent: fixed rounds with an answer after each, or as many as it wants (BRIGHT-Pro 4.2).

An agent sees the question, all its searches and all documents that came back; the answer after a
fixed round is asked for without the searches (figure 4). What is asked grows at its end alone. A
turn that brings nothing usable after its repair is an empty round: nothing is searched, and it is
counted.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judges.conversations.agents import SearchTurn, find_citations
from judges.conversations.requests import Conversation, Step
from judges.domain.verdicts import NoVerdict
from judges.errors import Unreachable
from judges.prompts.agents import (
    agent_prompt,
    document_fields,
    evidence_prompt,
    render_evidence,
    render_question,
    render_round,
)
from judges.prompts.render import repair_prompt
from judges.records import Judge

FIXED, ADAPTIVE = "fixed", "adaptive"
ROUNDS = {FIXED: 3, ADAPTIVE: 100}
MOST = {FIXED: 10, ADAPTIVE: 100}  # The safety caps of both protocols.
ROOM = {False: 30_000, True: 10_000}  # Tokens of a turn, and of the final answer (BRIGHT-Pro appendix F).
EMPTY = 3  # Empty rounds in a row after which an adaptive agent has to answer.


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that a search returned, with its text as far as the agent sees it."""

    id: str
    text: str
    is_cut: bool


# find(conversation, text, number): the best documents for a text; `number` counts the searches from 0.
Find = Callable[[Conversation, str, int], Awaitable[Sequence[FoundDocument]]]


@dataclass(slots=True)
class AgentTrace:
    """All that an agent did about one question.

    `rounds`: `search` ("": the turn could not be used), and the ids of the documents `returned` and
    `truncated`. `answers`: after which `round`, the `answer` ("": `problem` says why there is
    none), its `confidence`, `citations`, and `unknown_citations` of documents that were not
    returned until then. Both as they are stored.
    """

    rounds: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    stop: str = ""  # rounds, answered, limit or empty.
    early_answers: int = 0  # Turns that tried to answer before the last round of the fixed protocol.
    several_searches: int = 0  # Turns that asked for several searches once more after their repair.

    @property
    def searches(self) -> int:
        """The number of searches that were made."""
        return sum(bool(one["search"]) for one in self.rounds)


class SearchingAgent:
    """An agent at work on one question."""

    def __init__(self, conversation: Conversation, agent: Judge, find: Find) -> None:
        self.conversation, self.agent, self.find = conversation, agent, find
        self.trace = AgentTrace()
        self.question = conversation.subject.text
        self._fences: list[str] = []
        self._evidence: list[str] = []
        self._shown: dict[str, int] = {}  # By document, the round that shows its text.
        self._material: list[dict[str, Any]] = []
        self._asked = self._searched = 0

    async def run_fixed(self, rounds: int) -> AgentTrace:
        """Search so often, and answer after each round from all that was found until then."""
        for _ in range(rounds):
            turn = await self._next_turn()
            # The protocol fixes the number of rounds, so that agents are compared at equal cost: an
            # early answer is counted, and the round repeats the last search.
            if turn is not None and turn.answer is not None:
                self.trace.early_answers += 1
                await self._search(self._last_search)
            else:
                await self._search(turn.searches[0] if turn is not None else "")
            await self._answer(from_evidence=True)
        self.trace.stop = "rounds"
        return self.trace

    async def run_adaptive(self, rounds: int) -> AgentTrace:
        """Run the adaptive protocol: search until the agent answers, or must at the limit."""
        while len(self.trace.rounds) < rounds:
            turn = await self._next_turn()
            if turn is not None and turn.answer is not None:
                self._keep_answer(turn)
                self.trace.stop = "answered"
                return self.trace
            await self._search(turn.searches[0] if turn is not None else "")
            # Only the last rounds count: one usable search starts the run of empty rounds anew.
            if len(self.trace.rounds) >= EMPTY and not any(one["search"] for one in self.trace.rounds[-EMPTY:]):
                break
        self.trace.stop = "limit" if len(self.trace.rounds) >= rounds else "empty"
        await self._answer()
        return self.trace

    @property
    def _last_search(self) -> str:
        return next((one["search"] for one in reversed(self.trace.rounds) if one["search"]), self.question)

    async def _next_turn(self) -> SearchTurn | None:
        """Return the next search or answer; None for an unusable turn. Of several searches the first one counts."""
        step = self._step(answer=False)
        turn = await self._ask(step)
        if turn is None or len(turn.searches) < 2:
            return turn
        # Two searches in one turn would give this agent more documents for a round than the others get.
        problem = f"it asks for {len(turn.searches)} searches in one turn, and one is possible"
        # A step with a number of its own: the stored calls of this turn and of its repair stay apart.
        again = await self._ask(replace(step, prompt=repair_prompt(step.prompt, problem), number=self._next()))
        if again is not None and len(again.searches) > 1:
            self.trace.several_searches += 1
        return turn if again is None else again

    async def _search(self, text: str) -> None:
        """A round: search, and append to what the agent sees. Without a text it stays empty."""
        number = len(self.trace.rounds) + 1
        found: Sequence[FoundDocument] = ()
        if text:
            found = await self.find(self.conversation, text, self._searched)
            self._searched += 1
        shown = [
            document_fields(one.id, one.text, is_cut=one.is_cut, earlier=self._shown.get(one.id, 0)) for one in found
        ]
        # Each text is sent once. A later round names the round that shows it, since the prompt holds all rounds.
        new = [{"id": one.id, "text": one.text} for one in found if one.id not in self._shown]
        for one in found:
            self._shown.setdefault(one.id, number)
        cut = [one.id for one in found if one.is_cut]
        self.trace.rounds.append({"search": text, "returned": [one.id for one in found], "truncated": cut})
        # Appended, never rewritten: providers cache the longest unchanged beginning of a prompt.
        self._fences.append(render_round(number, text, shown))
        if any("text" in fields for fields in shown):
            self._evidence.append(render_evidence([fields for fields in shown if "text" in fields]))
        self._material.append({"search": text, "documents": new})

    async def _answer(self, *, from_evidence: bool = False) -> None:
        """Answer from all that was found until now; `from_evidence`: the searches are not shown."""
        step = self._step(answer=True)
        if from_evidence:
            step = replace(step, prompt=evidence_prompt(render_question(self.question), self._evidence))
        turn = await self._ask(step)
        if turn is None:
            self._append_answer(problem=self.conversation.problem_with(step) or "no answer")
        else:
            self._keep_answer(turn)

    def _keep_answer(self, turn: SearchTurn) -> None:
        assert turn.answer is not None
        # Documents of this and earlier rounds alone: what a later round finds was not there to be cited.
        known, unknown = find_citations(turn.answer, self._shown.keys())
        self._append_answer(turn.answer, turn.confidence, known, unknown)

    def _append_answer(
        self,
        answer: str = "",
        confidence: int | None = None,
        citations: Sequence[str] = (),
        unknown: Sequence[str] = (),
        problem: str = "",
    ) -> None:
        self.trace.answers.append(
            {
                "round": len(self.trace.rounds),
                "answer": answer,
                "confidence": confidence,
                "citations": list(citations),
                "unknown_citations": list(unknown),
                "problem": problem,
            }
        )

    async def _ask(self, step: Step[SearchTurn]) -> SearchTurn | None:
        """The turn; None if none after its repair. Unreachable where nobody answered."""
        found = await self.conversation.ask(step)
        if not isinstance(found, NoVerdict):
            return found
        # Not reached at all is no empty round: the trace is left out, and its query is asked about
        # when the job goes on.
        if found.outcome == "error":
            raise Unreachable(self.conversation.problem_with(step))
        return None

    def _step(self, *, answer: bool) -> Step[SearchTurn]:
        return Step(
            "search",
            SearchTurn,
            with_room(self.agent, answer=answer),
            agent_prompt(render_question(self.question), self._fences, answer=answer),
            number=self._next(),
            expected={"must_answer": answer},
            material={"question": self.question, "rounds": list(self._material), "must_answer": answer},
        )

    def _next(self) -> int:
        """Number the steps: the same in every run, since each follows from the answers before."""
        self._asked += 1
        return self._asked - 1


def with_room(judge: Judge, *, answer: bool) -> Judge:
    """The judge with the step's limit of tokens and its provider's temperature, unless the judges file sets them."""
    own = {"max_output_tokens": ROOM[answer], "temperature": "default"}  # BRIGHT-Pro appendix F.
    return replace(judge, parameters={**own, **judge.parameters})
