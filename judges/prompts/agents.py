"""Prompts of agents that search, and of those who write and grade answers (BRIGHT-Pro appendix E), in our own words.

An agent's message grows at its end alone: the question, then a fence for each round. All steps of
an agent have one system message and one schema, so that a provider's prompt cache keeps all that
stood in the step before. So do the answers after fixed rounds, among themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from judges.prompts import templates
from judges.prompts.render import (
    TEXT_LIMIT,
    delimit_content,
    dump_json,
    make_general_prompt,
    step_prompt,
    truncated_field,
)
from judges.records import Prompt


def document_fields(name: str, text: str, *, is_cut: bool = False, earlier: int = 0) -> dict[str, Any]:
    """A document as an agent gets it: a text is shown once, `earlier` is the round in which it was shown already."""
    if earlier:
        return {"id": name, "note": f"its text is in round {earlier}"}
    return {"id": name, "text": text, **({"note": "cut: only its beginning"} if is_cut else {})}


def aspect_fields(name: str, text: str, importance: int) -> dict[str, Any]:
    """Return an aspect as writers and graders of answers get it."""
    return {"id": name, "aspect": text[:TEXT_LIMIT], "weight": importance}


def render_question(question: str) -> str:
    """Return the question, which begins every step about it."""
    return delimit_content(dump_json(truncated_field("question", question, TEXT_LIMIT)))


def render_round(number: int, search: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """Return a round of searching: what was asked and what came back. Without a search: the turn could not be used.

    `documents`: as `document_fields` gives them.
    """
    if not search:
        return delimit_content(
            dump_json({"round": number, "note": "this turn could not be used; nothing was searched"})
        )
    return delimit_content(dump_json({"round": number, "search": search, "documents": documents}))


def agent_prompt(question: str, rounds: Sequence[str], *, answer: bool) -> Prompt:
    """Return the next step of an agent; `question` and `rounds`: fences. `answer`: it has to answer now."""
    name = "agent-answer" if answer else "agent-search"
    user = templates.render(name, data="\n\n".join([question, *rounds]))
    return make_general_prompt(name, templates.text("agent-system"), user)


def render_evidence(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return documents that were found, without the search that found them; as `document_fields` gives them."""
    return delimit_content(dump_json({"documents": documents}))


def evidence_prompt(question: str, evidence: Sequence[str]) -> Prompt:
    """Return the question of an answer after a fixed round: nothing is shown but documents (BRIGHT-Pro figure 4)."""
    user = templates.render("agent-evidence", data="\n\n".join([question, *evidence]))
    return make_general_prompt("agent-evidence", templates.text("agent-evidence-system"), user)


def assess_prompt(question: str, aspects: Sequence[Mapping[str, Any]], reference: str, answer: str) -> Prompt:
    """Return the prompt that grades an answer without naming its system; parts shared by all answers come first.

    `aspects`: as `aspect_fields` gives them.
    """
    shared = {
        **truncated_field("question", question, TEXT_LIMIT),
        "aspects": aspects,
        **truncated_field("reference answer", reference, TEXT_LIMIT),
    }
    return step_prompt("agent-assess", shared, truncated_field("answer to grade", answer, TEXT_LIMIT))


def reference_prompt(
    question: str, aspects: Sequence[Mapping[str, Any]], passages: Mapping[str, tuple[str, Sequence[str]]]
) -> Prompt:
    """Write a reference answer. `passages`: by document id, its text and the ids of the aspects that it supports."""
    data = {
        **truncated_field("question", question, TEXT_LIMIT),
        "aspects": aspects,
        "passages": [{"id": key, "aspects": list(ids), "text": text} for key, (text, ids) in passages.items()],
    }
    return step_prompt("agent-reference", data)
