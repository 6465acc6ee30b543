"""A small benchmark whose qrels were pooled from lexical systems alone: systems of another kind are underrated.

Six systems answer twenty questions. Eight documents of each question are relevant; the qrels know
those that lexical systems find. People know all of them: `fill` lets one of them judge the pool.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from actions.services import Actor
from annotation.models import Assignment, Membership, Role
from annotation.work.judging import submitting
from annotation.work.queue import assignment
from annotation.work.queue.annotators import AnnotatorContext, SubmittedAnswer
from benchmark.hole_filling import services, stages
from benchmark.hole_filling.options import FillingOptions
from benchmark.models import Filling, Qrels, Report, Run
from benchmark.qrels import versions
from benchmark.report import reports
from corpus.models import Assessor, Collection, Document, Item, Judgment, Label, Pair, Query
from tests.factories import make_collection, make_member, make_query
from tests.rankings import make_run

SYSTEMS = {
    "bm25": (1.0, 0.0),
    "bm25-stemmed": (1.1, 0.1),
    "query2doc": (0.8, 0.5),
    "dense-small": (0.3, 0.9),
    "dense-large": (0.35, 1.3),
    "reranked": (0.8, 1.2),
}
"""How much a system sees of words and of meaning."""
PARTS = [
    "keys of a dict", "slices", "generators", "context managers", "decorators", "descriptors", "comprehensions",
    "closures", "the import system", "exceptions", "coroutines", "metaclasses", "name binding", "operators",
    "string literals", "assignment", "the with statement", "class bodies", "numeric types", "iterators",
]  # fmt: skip
QUESTIONS = ["What does the reference say about {}?", "When are {} evaluated?", "Which errors come from {}?"]
DOCUMENTS = 40
RELEVANT = 8
DEPTH = 10
KNOWN = (*range(RELEVANT // 2), *range(30, 36))
"""Places of the documents that the qrels know."""


def truth() -> dict[str, set[str]]:
    """Relevant documents of each question."""
    return {f"q{n}": {f"d{n}-{place}" for place in range(RELEVANT)} for n in range(len(PARTS))}


def lexical(document: str) -> bool:
    """Of the relevant documents the first half shares its words with the question, the other half only its meaning."""
    return int(document.partition("-")[2]) < RELEVANT // 2


def rankings(seed: int = 0) -> dict[str, dict[str, list[str]]]:
    """System -> question -> documents, best first."""
    random = np.random.default_rng(seed)
    found: dict[str, dict[str, list[str]]] = {}
    for name, (words, meaning) in SYSTEMS.items():
        found[name] = {}
        for query, relevant in truth().items():
            documents = [f"d{query[1:]}-{place}" for place in range(DOCUMENTS)]
            gains = [(2.0 * (words if lexical(one) else meaning)) * (one in relevant) for one in documents]
            scores = np.array(gains) + random.normal(0, 0.7, len(documents))
            found[name][query] = [documents[at] for at in np.argsort(-scores)[: 2 * DEPTH]]
    return found


def collection_of_books(name: str = "books") -> Collection:
    """Questions, documents, and reference grades that know the lexical half and some that are not relevant."""
    collection = make_collection(
        name,
        title="Questions about the language",
        instruction="A passage is relevant when it states what the reference says about the question.",
    )
    reference = Assessor.objects.create(collection=collection, kind="reference", name="qrels")
    for n, part in enumerate(PARTS):
        query = make_query(collection, QUESTIONS[n % 3].format(part), external_id=f"q{n}", answers=[])
        documents = Document.objects.bulk_create(passage(collection, part, n, place) for place in range(DOCUMENTS))
        pairs = Pair.objects.bulk_create(
            Pair(collection=collection, query=query, document=documents[place], is_candidate=False) for place in KNOWN
        )
        Judgment.objects.bulk_create(
            Judgment(pair=pair, assessor=reference, step="import", grade=int(place < RELEVANT))
            for place, pair in zip(KNOWN, pairs, strict=True)
        )
    return collection


def passage(collection: Collection, part: str, n: int, place: int) -> Document:
    """A document of a question, not yet in the database."""
    text = f"Of {part} the reference says in its paragraph {place} how they behave, and what follows from it. "
    name, title = f"d{n}-{place}", f"{part.capitalize()}, part {place + 1}"
    return Document(collection=collection, external_id=name, title=title, text=text * 4, content_hash=name)


def runs_of(collection: Collection) -> list[Run]:
    return [make_run(collection, name, ranked) for name, ranked in rankings().items()]


def trec(ranked: Mapping[str, list[str]]) -> str:
    lines = [
        f"{query} Q0 {document} {rank} {100 - rank} system\n"
        for query, documents in ranked.items()
        for rank, document in enumerate(documents, 1)
    ]
    return "".join(lines)


def judge_all(
    member: Membership, graded: Mapping[str, Mapping[str, int]] | None = None, most: int = 100_000
) -> list[tuple[str, str]]:
    """The member judges what the queue lends, truthfully; the pairs in the order of lending.

    `graded`: what is relevant, where that is not the scene's truth.
    """
    known = {query: dict.fromkeys(found, 1) for query, found in truth().items()} if graded is None else graded
    seen: list[tuple[str, str]] = []
    lent = assignment.in_transaction(lambda db: submitting.claim(db, AnnotatorContext.of(member)))
    while lent is not None and len(seen) < most:
        lease = Assignment.objects.select_related("item__pair__query", "item__pair__document").get(pk=lent)
        pair = lease.item.pair
        seen.append((pair.query.external_id, pair.document.external_id))
        grade = known.get(seen[-1][0], {}).get(seen[-1][1], 0)
        member.refresh_from_db()
        answer = SubmittedAnswer(lease.item_id, lease.token, grade)
        lent = assignment.in_transaction(
            lambda db, answer=answer: submitting.submit(db, AnnotatorContext.of(member), answer)
        )
    return seen


def start_filling(*, collection: Collection, runs: Sequence[Run], by: str = "charlie", **told: Any) -> Filling:
    """Start a hole filling from the shell."""
    options = FillingOptions.read({"runs": [run.name for run in runs], **told})
    return services.start_filling(Actor(by), collection, options)


def filled(collection: Collection, runs: list[Run]) -> Filling:
    """A filling to depth 10, settled to its end by what people would say (`judge_all` goes through the queue)."""
    begun = start_filling(collection=collection, runs=runs, depth=DEPTH, policy="people")
    known = truth()
    pairs = Pair.objects.filter(pk__in=begun.pairs).select_related("query", "document")
    Label.objects.bulk_create(
        Label(pair=pair, grade=int(pair.document.external_id in known[pair.query.external_id]), origin="people")
        for pair in pairs
    )
    Item.objects.filter(pair__in=begun.pairs).update(state=Item.State.SETTLED)
    return stages.advance_filling(begun)


def reported(collection: Collection, runs: list[Run], before: Qrels, after: Qrels) -> tuple[Report, Report]:
    """How safe the order is by the version before, and what the version after did to it."""
    safe = reports.ensure_report(collection, before, before, runs, DEPTH)
    return safe, reports.ensure_report(collection, before, after, runs, DEPTH)


def whole_scene() -> tuple[Collection, Membership]:
    """Everything, with an admin to look at it."""
    collection = collection_of_books()
    charlie = make_member(collection, "charlie", Role.ADMIN)
    runs = runs_of(collection)
    before = versions.original_version(collection, by="charlie")
    done = filled(collection, runs)
    assert done.after is not None
    reported(collection, runs, before, done.after)
    return collection, charlie


def by_id(collection: Collection) -> tuple[dict[str, Query], dict[str, Document]]:
    """Rows by the ids of files."""
    queries = Query.objects.filter(collection=collection)
    documents = Document.objects.filter(collection=collection)
    return {one.external_id: one for one in queries}, {one.external_id: one for one in documents}
