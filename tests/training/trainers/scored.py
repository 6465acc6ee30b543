"""Sets of scores with chains that a tiny model learns in seconds (`export --format erank-sft`)."""

import json
import random
from hashlib import sha256
from pathlib import Path

from judges.domain.chains import render_answer, render_prompt
from tests.training.trainers.learnable import OTHER, RELEVANT, RULE, TOPICS, Pair
from training.jobs.folder import JobFolder

CHAINS = {1: "It says what is returned.", 0: "It says what is raised."}


def scored_row(pair: Pair, *, score: int, chain: str) -> dict[str, object]:
    """A row as the export writes it."""
    return {
        "query_id": pair.query_id,
        "doc_id": pair.doc_id,
        "instruction": pair.instruction,
        "query": pair.query,
        "document": pair.document,
        "chain": chain,
        "prompt": render_prompt(pair.query, pair.document, pair.instruction),
        "completion": render_answer(chain, score),
        "score": score,
        "positive": bool(pair.label),
        "k": 1,
        "mean": float(score),
        "kind": "positive" if pair.label else "hard",
    }


def short_pairs(*, queries: int, documents: int, seed: int, first: int = 0) -> list[Pair]:
    """The same rule in documents of two words: the first document of a query is relevant."""
    draw = random.Random(seed)
    return [
        Pair(
            f"what does it return {query}",
            f"{draw.choice(TOPICS)} {draw.choice(OTHER if number else RELEVANT)}",
            RULE,
            int(not number),
            0.95 if not number else 0.05,
            f"q{query}",
            f"d{query}-{draw.randrange(10**6):06d}",
        )
        for query in range(first, first + queries)
        for number in range(documents)
    ]


def export_scores(folder: Path, *, queries: int = 24, dev: int = 12, documents: int = 3, noisy: bool = False) -> Path:
    """Relevant documents have 9, others 1; `noisy`: 4 to 9 and 1 to 6, so that there is something left to learn."""
    folder.mkdir(parents=True)
    draw = random.Random(7)
    files = []
    for name, first, number in (("train", 0, queries), ("dev", queries, dev)):
        lines = []
        for pair in short_pairs(queries=number, documents=documents, seed=number, first=first):
            score = draw.randrange(4, 10) if pair.label else draw.randrange(1, 7)
            score = score if noisy else 9 if pair.label else 1
            lines.append(json.dumps(scored_row(pair, score=score, chain="Hm." if noisy else CHAINS[pair.label])) + "\n")
        text = "".join(lines)
        (folder / f"{name}.jsonl").write_text(text)
        files.append({"name": f"{name}.jsonl", "sha256": sha256(text.encode()).hexdigest()})
    manifest = {"format": "erank-sft", "collection": "learnable", "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def ask(folder: Path, recipe: str, data: Path, base: str, **options: object) -> JobFolder:
    """A job of a recipe on a set."""
    one = JobFolder(folder / "job")
    values = {"kind": "train", "recipe": recipe, "data": str(data), "base": base, "out": str(folder / "out")}
    one.ask({**values, "device": "cpu", "options": {"preset": "tiny", **options}})
    return one
