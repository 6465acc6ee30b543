"""A collection made for tests that a tiny model learns in seconds: the rule needs no knowledge, only the document."""

import random
from pathlib import Path

from tests.training_sets import write_export
from training.recipes.data import Example

WORDS = (
    "the", "order", "of", "names", "function", "is", "read", "left", "to", "right", "when", "class", "body", "ends",
)  # fmt: skip
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


def _row(pair: Example) -> dict[str, object]:
    kept = {name: getattr(pair, name) for name in ("query", "document", "query_id", "doc_id", "instruction")}
    scores = {"revised_score": pair.teacher, "annotated_label": "yes" if pair.label else "no"}
    return {**kept, **scores, "loss_type": "point-wise;sft", "contribution_evidence": ""}
