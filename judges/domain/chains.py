"""A chain of thought that ends in a score: the prompt of a reranker, and the parsing of its answer (ERank figure 5).

Judges answer in JSON (judges.prompts). Their chains become training data in this format, and a model
that was trained on them answers in it. Pure.
"""

import re

HIGHEST = 10
# ERank's prompt in our own words: one definition of relevance, both ends of the scale, no limit on length.
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
    """Return the whole prompt as one text, for trainers that do not render prompts themselves."""
    return f"{SYSTEM}\n\n{render_question(query, document, instruction)}"


def render_answer(chain: str, score: int) -> str:
    """Return the answer that a model learns: the chain, then the score."""
    for tag in TAGS:  # A tag inside a chain would make the answer malformed.
        chain = chain.replace(tag, f"{tag[:-1]} >")
    return f"<think>{chain}</think><answer>{score}</answer>"


def parse_answer(text: str) -> int | None:
    """Return the score of an answer; None unless it is one chain, then one whole number from 0 to 10, and no more."""
    match = _ANSWER.fullmatch(text)
    return int(match[1]) if match and all(text.count(tag) == 1 for tag in TAGS) else None
