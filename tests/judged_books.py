"""A small judged collection, and training sets made of it, for tests."""

import json
from pathlib import Path
from typing import Any

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from corpus.models import Collection, Document, Label, Pair, Query, Target
from judges.models import Attempt, JudgeVersion
from tests.evidence import build_attempt, make_campaign, make_judge, make_prompt
from tests.factories import make_collection

VOTES = ([1, 1, 1, 1, 0], [0, 0, 0, 0, 1])  # Of five judges, on a relevant document and on another.


def make_books(name: str = "books", queries: int = 10) -> Collection:
    """Queries, each with a relevant and two other documents of their own, and five votes on each pair."""
    books = make_collection(name, grades=3, instruction="Holds the answer.")
    judges = [
        JudgeVersion.objects.filter(name=name).first() or make_judge(name)
        for name in (f"judge-{n}" for n in range(1, 6))
    ]
    campaign = make_campaign(books, judges)
    asked = Query.objects.bulk_create(
        Query(
            collection=books, external_id=f"q{q}", text=f"What is thing {q} number{q}?",
            answers=[f"Thing {q}."], content_hash=f"q{q}",
        )
        for q in range(queries)
    )  # fmt: skip
    documents = Document.objects.bulk_create(
        Document(
            collection=books, external_id=f"d{q}-{d}", title=f"Title {d}", content_hash=f"d{q}-{d}",
            text=" ".join(f"word{q}x{d}x{w}" for w in range(20)),
        )
        for q in range(queries)
        for d in range(3)
    )  # fmt: skip
    pairs = Pair.objects.bulk_create(
        Pair(collection=books, query=asked[place // 3], document=one) for place, one in enumerate(documents)
    )
    Label.objects.bulk_create(
        Label(pair=pair, grade=0 if place % 3 else 2, origin="ensemble") for place, pair in enumerate(pairs)
    )
    prompt = make_prompt()
    Attempt.objects.bulk_create(
        build_attempt(campaign, pair, judge, verdict, prompt, place=place)
        for place, pair in enumerate(pairs)
        for place, (judge, verdict) in enumerate(zip(judges, VOTES[bool(place % 3)], strict=True))
    )
    return books


def write_targets(books: Collection) -> None:
    """Contribution and evidence of every relevant pair."""
    for pair in Pair.objects.filter(collection=books, labels__grade__gte=books.relevant_from):
        texts = {"contribution": "It says what the thing is.", "evidence": pair.document.text}
        Target.objects.create(pair=pair, version=1, kind="judge", writer="judge-1", good=True, **texts)


def export(collection: Collection, name: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Make a training set; its manifest."""
    write_snapshot(create_snapshot(collection, ExportOptions(format=name, **options), folder))
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
