"""A collection made for tests that a tiny model learns in seconds: the rule needs no knowledge, only the document."""

import json
import random
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

WORDS = (
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
)
TOPICS = ("list", "string", "number", "module", "loop", "file")
RULE = "A document is relevant when it says what is returned."
"""The collection's own definition: short, as a tiny model reads few words."""
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
                    RULE,
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


def export(folder: Path, *, shuffled: bool = False, queries: int = 60, dev: int = 30) -> Path:
    """The collection as `export --format prism --teacher labels` writes it; no query is on both sides."""
    folder.mkdir(parents=True)
    sides = {
        "train": pairs(queries=queries, seed=1, shuffled=shuffled),
        "dev": pairs(queries=dev, seed=2, shuffled=shuffled, first=1000),
    }
    files = []
    for split, rows in sides.items():
        text = "".join(json.dumps(_row(row)) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text)
        files.append({"name": f"{split}.jsonl", "rows": len(rows), "sha256": sha256(text.encode()).hexdigest()})
    manifest = {"format": "prism", "collection": "learnable", "options": {"teacher": "labels"}, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def _row(pair: Pair) -> dict[str, object]:
    return {
        "query": pair.query,
        "document": pair.document,
        "loss_type": "point-wise;sft",
        "revised_score": pair.teacher,
        "annotated_label": "yes" if pair.label else "no",
        "contribution_evidence": "",
        "query_id": pair.query_id,
        "doc_id": pair.doc_id,
        "instruction": pair.instruction,
    }
