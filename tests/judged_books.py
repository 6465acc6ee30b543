"""A small judged collection, and training sets made of it, for tests."""

import json
from pathlib import Path
from typing import Any

from annotation.exports.formats import EVERY
from annotation.exports.sets.options import SetOptions, default_teacher
from annotation.exports.snapshots import create_snapshot, write_snapshot
from corpus.models import Collection, Pair, Target
from judges.models import JudgeVersion
from tests.evidence import make_campaign, make_judge, make_label, make_votes
from tests.factories import make_collection, make_document, make_pair, make_query


def make_books(name: str = "books", queries: int = 10) -> Collection:
    """Queries, each with a relevant and two other documents of their own, and five votes on each pair."""
    books = make_collection(name, grades=3, instruction="Holds the answer.")
    judges = [
        JudgeVersion.objects.filter(name=name).first() or make_judge(name)
        for name in (f"judge-{n}" for n in range(1, 6))
    ]
    campaign = make_campaign(books, judges)
    for q in range(queries):
        answers = [f"Thing {q}."]
        query = make_query(books, f"What is thing {q} number{q}?", external_id=f"q{q}", answers=answers)
        for d in range(3):
            text = " ".join(f"word{q}x{d}x{w}" for w in range(20))
            pair = make_pair(books, query, make_document(books, text, external_id=f"d{q}-{d}", title=f"Title {d}"))
            make_label(pair, 2 if d == 0 else 0, "ensemble")
            make_votes(campaign, pair, judges, [1, 1, 1, 1, 0] if d == 0 else [0, 0, 0, 0, 1])
    return books


def write_targets(books: Collection) -> None:
    """Contribution and evidence of every relevant pair."""
    for pair in Pair.objects.filter(collection=books, labels__grade__gte=books.relevant_from):
        texts = {"contribution": "It says what the thing is.", "evidence": pair.document.text}
        Target.objects.create(pair=pair, version=1, kind="judge", writer="judge-1", good=True, **texts)


def export(collection: Collection, name: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Make a training set; its manifest."""
    asked = SetOptions(**{"teacher": default_teacher(name), **options})
    write_snapshot(create_snapshot(collection=collection, form=EVERY[name], folder=folder, asked=asked))
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
