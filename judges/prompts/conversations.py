"""Prompts of conversations about answers, in our own words: answer from documents, and check whether it is correct."""

from collections.abc import Sequence

from judges.prompts.render import TEXT_LIMIT, step_prompt, truncated_field
from judges.records import Prompt

NO_INFORMATION = "No relevant information found."
CONTEXT_LIMIT = 4_000  # Characters of a document that an answer may use.


def answer_prompt(query: str, contexts: Sequence[str]) -> Prompt:
    """Return the prompt to answer the query from these documents alone (DREAM J); reference answers are never shown."""
    data = {
        **truncated_field("query", query, TEXT_LIMIT),
        "documents": [context[:CONTEXT_LIMIT] for context in contexts],
    }
    if any(len(context) > CONTEXT_LIMIT for context in contexts):
        data["documents, note"] = f"cut: the first {CONTEXT_LIMIT:,} characters of each"
    return step_prompt("rag-answer", data)


def correct_prompt(query: str, answer: str, references: Sequence[str]) -> Prompt:
    """Return the prompt that asks whether an answer says what one of the reference answers says (DREAM table 25)."""
    answer_field = truncated_field("answer", answer, TEXT_LIMIT)
    references = [reference[:TEXT_LIMIT] for reference in references]
    data = {**truncated_field("query", query, TEXT_LIMIT), **answer_field, "reference answers": references}
    return step_prompt("rag-correct", data)
