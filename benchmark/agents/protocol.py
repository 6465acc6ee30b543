"""The search protocols of an agent: fixed rounds with an answer after each, or as many as it wants (BRIGHT-Pro 4.2).

An agent sees the question, all its searches and all documents returned; the prompt for the answer
after a fixed round leaves the searches out (figure 4). Prompts grow only at their end. A turn that
is unusable even after its repair is an empty round: nothing is searched, and the round is counted.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judges.conversations.requests import Conversation, ConversationStep
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
from judges.prompts.answers.agents import SearchTurn, find_citations
from judges.prompts.render import repair_prompt
from judges.records import Judge

FIXED, ADAPTIVE = "fixed", "adaptive"
ROUNDS = {FIXED: 3, ADAPTIVE: 100}
MOST = {FIXED: 10, ADAPTIVE: 100}  # The largest number of rounds.
ROOM = {False: 30_000, True: 10_000}  # Tokens of a turn, and of the final answer (BRIGHT-Pro appendix F).
EMPTY = 3  # Empty rounds in a row after which an adaptive agent has to answer.


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that a search returned, with its text as far as the agent sees it."""

    id: str
    text: str
    is_cut: bool


# find(conversation, text, number) returns the best documents for a text; `number` counts the searches from 0.
Find = Callable[[Conversation, str, int], Awaitable[Sequence[FoundDocument]]]


@dataclass(slots=True)
class AgentTrace:
    """The searches and answers of an agent for one question, as they are stored.

    `rounds`: the `search` ("" if the turn could not be used), and the ids of the documents
    `returned` and `truncated`. `answers`: the `round` before the answer, the `answer` ("" if there
    is none: `problem` says why), its `confidence`, `citations`, and `unknown_citations` of
    documents that had not been returned by then.
    """

    rounds: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    stop: str = ""  # rounds, answered, limit or empty.
    early_answers: int = 0  # Turns that tried to answer before the last round of the fixed protocol.
    several_searches: int = 0  # Turns that asked for several searches once more after their repair.

    @property
    def searches(self) -> int:
        """The number of searches made."""
        return sum(bool(search_round["search"]) for search_round in self.rounds)


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
        self._steps = self._searches = 0

    async def run_fixed(self, rounds: int) -> AgentTrace:
        """Run the fixed protocol: answer after each round from all documents found so far."""
        for _ in range(rounds):
            turn = await self._next_turn()
            # The protocol fixes the number of rounds, so that agents are compared at equal cost: an
            # early answer is counted, and the round repeats the last search.
            if turn is not None and turn.answer is not None:
                self.trace.early_answers += 1
                searches = (search_round["search"] for search_round in reversed(self.trace.rounds))
                await self._search(next(filter(None, searches), self.question))
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
            # Only consecutive empty rounds count: one usable search resets the count.
            last_rounds = self.trace.rounds[-EMPTY:]
            if len(last_rounds) == EMPTY and not any(search_round["search"] for search_round in last_rounds):
                break
        self.trace.stop = "limit" if len(self.trace.rounds) >= rounds else "empty"
        await self._answer()
        return self.trace

    async def _next_turn(self) -> SearchTurn | None:
        """Return the next search or answer, None for an unusable turn. Of several searches only the first counts."""
        step = self._step(answer=False)
        turn = await self._ask(step)
        if turn is None or len(turn.searches) < 2:
            return turn
        # Two searches in one turn would give this agent more documents for a round than the others get.
        problem = f"it asks for {len(turn.searches)} searches in one turn, and one is possible"
        # The repair has its own step number, so that its stored calls stay apart from those of the turn.
        repair = await self._ask(replace(step, prompt=repair_prompt(step.prompt, problem), number=self._next()))
        if repair is not None and len(repair.searches) > 1:
            self.trace.several_searches += 1
        return turn if repair is None else repair

    async def _search(self, text: str) -> None:
        """Do one round: search, and append the documents to the agent's prompt. Without a text it is empty."""
        number = len(self.trace.rounds) + 1
        documents: Sequence[FoundDocument] = ()
        if text:
            documents = await self.find(self.conversation, text, self._searches)
            self._searches += 1
        prompt_fields = [
            document_fields(document.id, document.text, is_cut=document.is_cut, earlier=self._shown.get(document.id, 0))
            for document in documents
        ]
        # Each text is sent once; a later round refers to the round that shows it, since the prompt has all rounds.
        new_documents = [
            {"id": document.id, "text": document.text} for document in documents if document.id not in self._shown
        ]
        for document in documents:
            self._shown.setdefault(document.id, number)
        returned = [document.id for document in documents]
        truncated = [document.id for document in documents if document.is_cut]
        self.trace.rounds.append({"search": text, "returned": returned, "truncated": truncated})
        # Appended, never rewritten: providers cache the longest unchanged beginning of a prompt.
        self._fences.append(render_round(number, text, prompt_fields))
        if any("text" in fields for fields in prompt_fields):
            self._evidence.append(render_evidence([fields for fields in prompt_fields if "text" in fields]))
        self._material.append({"search": text, "documents": new_documents})

    async def _answer(self, *, from_evidence: bool = False) -> None:
        """Ask for an answer from all documents found so far; `from_evidence`: without showing the searches."""
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
        # Only documents of this and earlier rounds can be cited.
        citations, unknown = find_citations(turn.answer, self._shown.keys())
        self._append_answer(turn.answer, turn.confidence, citations, unknown)

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

    async def _ask(self, step: ConversationStep[SearchTurn]) -> SearchTurn | None:
        """Return the turn; None if it is unusable after its repair. Raises Unreachable if no model answered."""
        turn = await self.conversation.ask(step)
        if not isinstance(turn, NoVerdict):
            return turn
        # An unreachable model is no empty round: the trace is dropped, and the query is asked about
        # again when the job resumes.
        if turn.outcome == "error":
            raise Unreachable(self.conversation.problem_with(step))
        return None

    def _step(self, *, answer: bool) -> ConversationStep[SearchTurn]:
        return ConversationStep(
            "search",
            SearchTurn,
            with_room(self.agent, answer=answer),
            agent_prompt(render_question(self.question), self._fences, answer=answer),
            number=self._next(),
            expected={"must_answer": answer},
            material={"question": self.question, "rounds": list(self._material), "must_answer": answer},
        )

    def _next(self) -> int:
        """Number the steps, equally in every run, since each follows from the answers before it."""
        self._steps += 1
        return self._steps - 1


def with_room(judge: Judge, *, answer: bool) -> Judge:
    """Return the judge with the step's token limit and default temperature, unless the judges file sets them."""
    defaults = {"max_output_tokens": ROOM[answer], "temperature": "default"}  # BRIGHT-Pro appendix F.
    return replace(judge, parameters={**defaults, **judge.parameters})
