"""Prompts for synthetic queries, in our own words.

With their documents (RTriever-Synth, BRIGHT-Pro 5.1), in keyword form (Prism 4.1), from a document that answers them.
"""

from collections.abc import Mapping, Sequence

from judges.prompts.render import DOCUMENT_LIMIT, TEXT_LIMIT, step_prompt, truncated_field
from judges.records import Prompt

Plan = Mapping[str, str]  # A blueprint as its format has it.
PLANNED = ("rationale", "passage_type", "source", "title", "summary")  # What the writer sees of a blueprint.
AVOID = "must not provide"


def persona_prompt(seed: str, examples: Sequence[str]) -> Prompt:
    """Return the prompt for a new persona, and the seed in its voice; the examples show the form alone."""
    data = {**truncated_field("query", seed, TEXT_LIMIT), "examples of personas": list(examples)}
    return step_prompt("synth-persona", data)


def query_prompt(step: str, query: str) -> Prompt:
    """Return the prompt of a step that is shown the query alone: its type, a reference answer, its keywords."""
    return step_prompt(step, truncated_field("query", query, TEXT_LIMIT))


def decompose_prompt(query: str, answer: str) -> Prompt:
    """Return the prompt for the aspects that carry the answer."""
    data = {**truncated_field("query", query, TEXT_LIMIT), **truncated_field("answer", answer, TEXT_LIMIT)}
    return step_prompt("synth-decompose", data)


def blueprint_prompt(query: str, answer: str = "", aspects: Sequence[Plan] = ()) -> Prompt:
    """Return the prompt for a plan for each aspect; without aspects one for the query."""
    data = truncated_field("query", query, TEXT_LIMIT)
    if aspects:
        data |= {**truncated_field("answer", answer, TEXT_LIMIT), "aspects": [dict(one) for one in aspects]}
    return step_prompt("synth-blueprint", data)


def negatives_prompt(query: str, positives: Sequence[Plan]) -> Prompt:
    """Return the prompt for as many plans that do not help, before positives' texts are written."""
    shown = [{"title": one["title"], "summary": one["summary"]} for one in positives]
    return step_prompt("synth-negatives", {**truncated_field("query", query, TEXT_LIMIT), "answering passages": shown})


def compose_prompt(plans: Sequence[Plan]) -> Prompt:
    """Return the prompt for the passages of some plans; what a plan's missing aspect is about must not be provided."""
    shown = []
    for one in plans:
        plan = {name.replace("_", " "): one[name] for name in PLANNED}
        shown.append(plan | ({AVOID: one["missing_aspect"]} if "missing_aspect" in one else {}))
    return step_prompt("synth-compose", {"plans": shown})


def ask_prompt(document: str) -> Prompt:
    """Return the prompt for a query of somebody whom the document helps, unknown to them."""
    return step_prompt("query-ask", truncated_field("document", document, DOCUMENT_LIMIT))
