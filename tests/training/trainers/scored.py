"""Sets of scores with chains that a tiny model learns in seconds (`export --format erank-sft`)."""

import random
from pathlib import Path

from judges.domain.chains import render_answer, render_prompt
from tests.training.trainers.learnable import OTHER, RELEVANT, RULE, TOPICS
from tests.training_sets import write_export
from training.recipes.data import Example

CHAINS = {1: "It says what is returned.", 0: "It says what is raised."}


def scored_row(pair: Example, *, score: int, chain: str) -> dict[str, object]:
    """A row as the export writes it."""
    return {
        **{name: getattr(pair, name) for name in ("query_id", "doc_id", "instruction", "query", "document")},
        "chain": chain,
        "prompt": render_prompt(pair.query, pair.document, pair.instruction),
        "completion": render_answer(chain, score),
        "score": score,
        "positive": bool(pair.label),
        "k": 1,
        "mean": float(score),
        "kind": "positive" if pair.label else "hard",
    }


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
