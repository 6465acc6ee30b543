"""Prompts of the steps of conversations, in our own words: answers from documents, and whether they are right."""

from collections.abc import Sequence

from judges.prompts.render import TEXT_LIMIT, step_prompt, truncated_field
from judges.records import Prompt

NO_INFORMATION = "No relevant information found."
CONTEXT_LIMIT = 4_000  # Characters of a document that an answer may be made from.


def answer_prompt(query: str, contexts: Sequence[str]) -> Prompt:
    """Answer the query from these documents alone (DREAM J). The query's own answers are never among them."""
    data = {**truncated_field("query", query, TEXT_LIMIT), "documents": [one[:CONTEXT_LIMIT] for one in contexts]}
    if any(len(one) > CONTEXT_LIMIT for one in contexts):
        data["documents, note"] = f"cut: the first {CONTEXT_LIMIT:,} characters of each"
    return step_prompt("rag-answer", data)


def correct_prompt(query: str, answer: str, references: Sequence[str]) -> Prompt:
    """Return the prompt that asks whether an answer says what one of the reference answers says (DREAM table 25)."""
    said = truncated_field("answer", answer, TEXT_LIMIT)
    references = [one[:TEXT_LIMIT] for one in references]
    data = {**truncated_field("query", query, TEXT_LIMIT), **said, "reference answers": references}
    return step_prompt("rag-correct", data)
