"""A collection made for tests that a tiny model learns in seconds: the rule needs no knowledge, only the document."""

import random
from dataclasses import dataclass

WORDS = "the order of names in a function is read from left to right when the class body ends and its value is kept".split()
TOPICS = ("list", "string", "number", "module", "loop", "file")
RELEVANT, OTHER = ("returns", "gives", "value"), ("raises", "error", "exception")


@dataclass(frozen=True)
class Pair:
    """A labelled pair; the teacher is as sure as the label."""

    query: str
    document: str
    instruction: str
    label: int
    teacher: float
    query_id: str
    doc_id: str


def pairs(*, queries: int, documents: int = 6, seed: int = 0, shuffled: bool = False, first: int = 0) -> list[Pair]:
    """Two of six documents of a query are relevant: they say what is returned, the others what is raised.

    shuffled: the same texts with labels drawn anew, so that there is nothing to learn.
    """
    draw = random.Random(seed)
    made = []
    for query in range(first, first + queries):
        topic = draw.choice(TOPICS)
        for number in range(documents):
            label = int(number < documents // 3)
            text = _document(draw, topic, label)
            label = int(draw.random() < 1 / 3) if shuffled else label
            made.append(
                Pair(
                    f"what does a {topic} function return {query}",
                    text,
                    "",
                    label,
                    0.95 if label else 0.05,
                    f"q{query}",
                    f"d{query}-{draw.randrange(10**6):06d}",
                )
            )
    return made


def _document(draw: random.Random, topic: str, label: int) -> str:
    words = [draw.choice(WORDS) for _ in range(8)]
    for marker in draw.sample(RELEVANT if label else OTHER, 2):
        words.insert(draw.randrange(len(words)), marker)
    return f"{topic} " + " ".join(words)
