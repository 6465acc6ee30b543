"""Collections made for tests that a tiny model learns in seconds: the rule needs no knowledge, only the document."""

import random
from pathlib import Path

from judges.domain.chains import render_answer, render_prompt
from tests.training_sets import write_export
from training.recipes.data import Example

WORDS = [
    "the",
    "order",
    "of",
    "names",
    "function",
    "is",
    "read",
    "left",
    "to",
    "right",
    "when",
    "class",
    "body",
    "ends",
]
TOPICS = ("list", "string", "number", "module", "loop", "file")
RULE = "A document is relevant when it says what is returned."
"""The collection's own definition: short, as a tiny model reads few words."""
RELEVANT, OTHER = ("returns", "gives", "value"), ("raises", "error", "exception")


def pairs(*, queries: int, documents: int = 6, seed: int = 0, shuffled: bool = False, first: int = 0) -> list[Example]:
    """Two of six documents of a query are relevant: they say what is returned, the others what is raised.

    shuffled: the same texts with labels drawn anew, so that there is nothing to learn.
    """
    draw = random.Random(seed)
    made = []
    for query in range(first, first + queries):
        topic = draw.choice(TOPICS)
        for number in range(documents):
            label = int(number < documents // 3)
            words = [draw.choice(WORDS) for _ in range(8)]
            for marker in draw.sample(RELEVANT if label else OTHER, 2):
                words.insert(draw.randrange(len(words)), marker)
            label = int(draw.random() < 1 / 3) if shuffled else label
            asked, name = f"what does a {topic} function return {query}", f"d{query}-{draw.randrange(10**6):06d}"
            ids = f"q{query}", name
            made.append(Example(asked, " ".join([topic, *words]), RULE, label, 0.95 if label else 0.05, "", *ids))
    return made


def export(folder: Path, *, shuffled: bool = False, queries: int = 60, dev: int = 30) -> Path:
    """The collection as `export --format prism --teacher labels` writes it; no query is on both sides."""
    train = pairs(queries=queries, seed=1, shuffled=shuffled)
    held = pairs(queries=dev, seed=2, shuffled=shuffled, first=1000)
    return write_export(folder, "prism", [*map(_row, train)], [*map(_row, held)], options={"teacher": "labels"})


def _texts(pair: Example) -> dict[str, object]:
    return {name: getattr(pair, name) for name in ("query", "document", "query_id", "doc_id", "instruction")}


def _row(pair: Example) -> dict[str, object]:
    scores = {"revised_score": pair.teacher, "annotated_label": "yes" if pair.label else "no"}
    return {**_texts(pair), **scores, "loss_type": "point-wise;sft", "contribution_evidence": ""}


CHAINS = {1: "It says what is returned.", 0: "It says what is raised."}


def scored_row(pair: Example, *, score: int, chain: str) -> dict[str, object]:
    """A row as the export writes it."""
    return {
        **_texts(pair), "chain": chain, "prompt": render_prompt(pair.query, pair.document, pair.instruction),
        "completion": render_answer(chain, score), "score": score, "positive": bool(pair.label), "k": 1,
        "mean": float(score), "kind": "positive" if pair.label else "hard",
    }  # fmt: skip


def short_pairs(*, queries: int, documents: int, seed: int, first: int = 0) -> list[Example]:
    """The same rule in documents of two words: the first document of a query is relevant."""
    draw, made = random.Random(seed), []
    for query in range(first, first + queries):
        for number in range(documents):
            text, chance = f"{draw.choice(TOPICS)} {draw.choice(OTHER if number else RELEVANT)}", draw.randrange(10**6)
            ids = f"q{query}", f"d{query}-{chance:06d}"
            scores = (0, 0.05) if number else (1, 0.95)
            made.append(Example(f"what does it return {query}", text, RULE, *scores, "", *ids))
    return made


def export_scores(folder: Path, *, queries: int = 24, dev: int = 12, documents: int = 3, noisy: bool = False) -> Path:
    """Relevant documents have 9, others 1; `noisy`: 4 to 9 and 1 to 6, so that there is something left to learn."""
    draw, splits = random.Random(7), []
    for first, number in ((0, queries), (queries, dev)):
        splits.append(rows := [])
        for pair in short_pairs(queries=number, documents=documents, seed=number, first=first):
            score = draw.randrange(4, 10) if pair.label else draw.randrange(1, 7)
            score = score if noisy else 9 if pair.label else 1
            rows.append(scored_row(pair, score=score, chain="Hm." if noisy else CHAINS[pair.label]))
    return write_export(folder, "erank-sft", *splits)
