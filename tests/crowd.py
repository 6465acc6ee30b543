"""Votes of a crowd: many assessors who each judge a few items of many."""

from collections.abc import Iterator

import numpy as np

from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query


def votes_of(assessors: int, items: int, each: int) -> Iterator[tuple[int, int, int]]:
    """Who graded which item and how: (assessor, item, grade), so many different people on each item."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, items)
    for item in range(items):
        for who in random.choice(assessors, each, replace=False).tolist():
            yield who, item, int(truth[item] if random.random() < 0.8 else 1 - truth[item])


def judged_by_many(collection: Collection, assessors: int, items: int, each: int) -> None:
    """Store those votes on one query's documents, as imported people's judgments."""
    query = Query.objects.create(collection=collection, external_id="q", text="q", content_hash="q")
    documents = Document.objects.bulk_create(
        [Document(collection=collection, external_id=f"d{n}", text="t", content_hash=f"{n}") for n in range(items)]
    )
    pairs = Pair.objects.bulk_create([Pair(collection=collection, query=query, document=d) for d in documents])
    people = Assessor.objects.bulk_create(
        [Assessor(collection=collection, kind="human-import", name=f"worker-{n:03}") for n in range(assessors)]
    )
    Judgment.objects.bulk_create(
        [
            Judgment(pair=pairs[item], assessor=people[who], step="import", grade=grade)
            for who, item, grade in votes_of(assessors, items, each)
        ],
        batch_size=5_000,
    )
