"""Prompts for synthetic queries, in our own words.

Queries with their documents (RTriever-Synth, BRIGHT-Pro 5.1), queries in keyword form (Prism 4.1), and queries made
from a document that answers them.
"""

from collections.abc import Mapping, Sequence

from judges.prompts.render import DOCUMENT_LIMIT, TEXT_LIMIT, step_prompt, truncated_field
from judges.records import Prompt

Plan = Mapping[str, str]  # A blueprint of a passage, by the fields of its format.
PLANNED = ("rationale", "passage_type", "source", "title", "summary")  # Fields of a blueprint that the writer sees.
AVOID = "must not provide"


def persona_prompt(seed: str, examples: Sequence[str]) -> Prompt:
    """Return the prompt for a new persona and the seed query in its voice; the examples show only the form."""
    data = {**truncated_field("query", seed, TEXT_LIMIT), "examples of personas": list(examples)}
    return step_prompt("synth-persona", data)


def query_prompt(step: str, query: str) -> Prompt:
    """Return the prompt of a step that sees only the query: its type, a reference answer, its keywords."""
    return step_prompt(step, truncated_field("query", query, TEXT_LIMIT))


def decompose_prompt(query: str, answer: str) -> Prompt:
    """Return the prompt for the aspects that carry the answer."""
    data = {**truncated_field("query", query, TEXT_LIMIT), **truncated_field("answer", answer, TEXT_LIMIT)}
    return step_prompt("synth-decompose", data)


def blueprint_prompt(query: str, answer: str = "", aspects: Sequence[Plan] = ()) -> Prompt:
    """Return the prompt for one plan per aspect, or without aspects for one plan for the query."""
    data = truncated_field("query", query, TEXT_LIMIT)
    if aspects:
        data |= {**truncated_field("answer", answer, TEXT_LIMIT), "aspects": [dict(aspect) for aspect in aspects]}
    return step_prompt("synth-blueprint", data)


def negatives_prompt(query: str, positives: Sequence[Plan]) -> Prompt:
    """Return the prompt for as many plans of passages that do not help, before the positives are written."""
    passages = [{"title": plan["title"], "summary": plan["summary"]} for plan in positives]
    return step_prompt(
        "synth-negatives", {**truncated_field("query", query, TEXT_LIMIT), "answering passages": passages}
    )


def compose_prompt(plans: Sequence[Plan]) -> Prompt:
    """Return the prompt for the passages of some plans. A passage must not provide its plan's missing aspect."""
    plan_fields = []
    for plan in plans:
        fields = {name.replace("_", " "): plan[name] for name in PLANNED}
        if "missing_aspect" in plan:
            fields[AVOID] = plan["missing_aspect"]
        plan_fields.append(fields)
    return step_prompt("synth-compose", {"plans": plan_fields})


def ask_prompt(document: str) -> Prompt:
    """Return the prompt for a query that the document answers, by a person who has not seen it."""
    return step_prompt("query-ask", truncated_field("document", document, DOCUMENT_LIMIT))
