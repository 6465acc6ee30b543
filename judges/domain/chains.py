"""A chain of thought that ends in a score: how a reranker is asked for it, and how its answer is read (ERank figure 5).

Judges are asked in JSON (judges.prompts); this is what their chains become as training data, and
what a model that was trained on them writes. Pure.
"""

import re

HIGHEST = 10
# Our own words for ERank's prompt: one definition of relevance, the two ends of the scale, no limit of length.
SYSTEM = (
    "You score how relevant a document is to a query, by the rule of relevance that comes first. Scores are whole "
    "numbers from 0 to 10. 0: the document is entirely unrelated. 10: the document is a perfect match. Think first, "
    "between <think> and </think>. Then write the score, and nothing else, between <answer> and </answer>."
)
TO_QUERY, TO_DOCUMENT = "\nQuery: ", "\nDocument: "
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_ANSWER = re.compile(r"\s*<think>.*</think>\s*<answer>\s*(10|[0-9])\s*</answer>\s*", re.DOTALL)


def render_question(query: str, document: str, instruction: str) -> str:
    """Return the message that asks for a score, without the system message."""
    return f"Rule: {instruction}{TO_QUERY}{query}{TO_DOCUMENT}{document}"


def render_prompt(query: str, document: str, instruction: str) -> str:
    """Return the whole prompt as one text, for trainers that render none of their own."""
    return f"{SYSTEM}\n\n{render_question(query, document, instruction)}"


def render_answer(chain: str, score: int) -> str:
    """Return the answer that a model learns: the chain, then the score."""
    for tag in TAGS:  # A tag inside a chain would make the answer malformed.
        chain = chain.replace(tag, f"{tag[:-1]} >")
    return f"<think>{chain}</think><answer>{score}</answer>"


def parse_answer(text: str) -> int | None:
    """Return the score of an answer: one chain, then one whole number from 0 to 10 and nothing after it; else None."""
    found = _ANSWER.fullmatch(text)
    return int(found[1]) if found and all(text.count(tag) == 1 for tag in TAGS) else None
