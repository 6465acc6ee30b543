"""Prompts of search agents, and of the models that write and grade answers (BRIGHT-Pro appendix E), in our own words.

An agent's message grows only at its end: the question, then a fenced block for each round. All steps of an agent share
one system message and one schema, so that a provider's prompt cache covers everything from the previous step. The same
is true of the answers after fixed rounds, among themselves.
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
    """Return a document as an agent sees it. Its text is shown once: `earlier` is the round that has shown it."""
    if earlier:
        return {"id": name, "note": f"its text is in round {earlier}"}
    return {"id": name, "text": text, **({"note": "cut: only its beginning"} if is_cut else {})}


def render_question(question: str) -> str:
    """Return the fenced question, with which every step begins."""
    return delimit_content(dump_json(truncated_field("question", question, TEXT_LIMIT)))


def render_round(number: int, search: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """Return a search round, fenced: the search and its documents. An empty `search` means an unusable turn.

    `documents`: see `document_fields`.
    """
    if not search:
        return delimit_content(
            dump_json({"round": number, "note": "this turn could not be used; nothing was searched"})
        )
    return delimit_content(dump_json({"round": number, "search": search, "documents": documents}))


def agent_prompt(question: str, rounds: Sequence[str], *, answer: bool) -> Prompt:
    """Return an agent's next step. `question`, `rounds`: fenced blocks. `answer`: whether it has to answer now."""
    name = "agent-answer" if answer else "agent-search"
    user = templates.render(name, data="\n\n".join([question, *rounds]))
    return make_general_prompt(name, templates.text("agent-system"), user)


def render_evidence(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return retrieved documents, fenced, without the search that found them. `documents`: see `document_fields`."""
    return delimit_content(dump_json({"documents": documents}))


def evidence_prompt(question: str, evidence: Sequence[str]) -> Prompt:
    """Return the prompt for an answer after a fixed round: only documents are shown (BRIGHT-Pro figure 4)."""
    user = templates.render("agent-evidence", data="\n\n".join([question, *evidence]))
    return make_general_prompt("agent-evidence", templates.text("agent-evidence-system"), user)


def reference_prompt(
    question: str, aspects: Sequence[Mapping[str, Any]], passages: Mapping[str, tuple[str, Sequence[str]]]
) -> Prompt:
    """Return the prompt for a reference answer. `passages`: text and supported aspects' ids, by document id."""
    data = {
        **truncated_field("question", question, TEXT_LIMIT),
        "aspects": aspects,
        "passages": [{"id": key, "aspects": list(ids), "text": text} for key, (text, ids) in passages.items()],
    }
    return step_prompt("agent-reference", data)
