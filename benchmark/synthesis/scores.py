"""`synthesize_scores`: documents drawn for each query, scored k times, written as training data (ERank 3.2, C)."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from benchmark.runs.files import read_run
from benchmark.runs.rankings import excluded_documents
from corpus.errors import BadInput
from corpus.labels import reference_grades
from corpus.models import Collection, Document, Label, Pair, Query
from corpus.search.bm25 import index_for
from judges.domain.chains import render_answer, render_prompt
from judges.retrieval.synthesis import ScoredPair, synthesize

DEEPEST = 1000
# Places among the run's documents that are not relevant, from 0: all of the first, a sample of half
# the rest of each of the others (ERank C).
HARD, MEDIUM, EASY = slice(0, 10), slice(10, 100), slice(100, 1000)
DOCUMENTS = 20
Drawn = dict[str, str]  # Documents of a query, and why each was taken.


def draw_documents(
    positives: Sequence[str], negatives: Sequence[str], ranked: Sequence[str], *, seed: str, number: int = DOCUMENTS
) -> Drawn:
    """`number` documents, or all that there are, each with why it was taken: positive, negative, hard, medium or easy.

    Every positive is taken (the paper has one a query); ties and order are those of `ranked`, whose
    positives take no rank. The same seed draws the same documents.
    """
    found = dict.fromkeys(positives, "positive")
    for document in negatives:
        found.setdefault(document, "negative")
    # Ranks are those among the negatives, so relevant documents leave before ranks are counted.
    ranked = [document for document in ranked if found.get(document) != "positive"]
    for document in ranked[HARD]:
        found.setdefault(document, "hard")
    taken = dict(islice(found.items(), max(number, len(set(positives)))))
    room = number - len(taken)
    if room <= 0:
        return taken
    random = Random(seed)
    medium = [document for document in ranked[MEDIUM] if document not in found]
    easy = [document for document in ranked[EASY] if document not in found]
    # Where one range of ranks is short the other gives more.
    many = min(len(medium), max((room + 1) // 2, room - len(easy)))
    few = min(len(easy), room - many)
    taken |= dict.fromkeys(random.sample(medium, many), "medium")
    return taken | dict.fromkeys(random.sample(easy, few), "easy")


def draw_by_query(
    collection: Collection, run: Path | None, *, number: int, queries: int | None, seed: int
) -> dict[str, Drawn]:
    """Documents to score by query id, for queries with a relevant document. Raises BadInput where there is none."""
    positives, negatives = labelled_documents(collection)
    chosen = sorted(positives)
    if not chosen:
        raise BadInput(f"{collection.name} has no relevant pair: label some, or import qrels, first")
    if queries is not None:
        chosen = sorted(Random(f"queries {seed}").sample(chosen, min(queries, len(chosen))))
    ranked = _from_run(collection, run, chosen) if run else _by_bm25(collection, positives, chosen)
    left_out = _excluded_by_id(collection)
    found = {}
    for query in chosen:
        # What a query excludes (BRIGHT) is no negative of it: no system may return it, relevant or not.
        kept = [one for one in ranked.get(query, []) if one not in left_out.get(query, ())]
        given = positives[query], negatives.get(query, []), kept
        found[query] = draw_documents(*given, seed=f"{seed} {query}", number=number)
    return found


def make_scores(
    collection: Collection,
    chosen: Mapping[str, Drawn],
    *,
    judge: str,
    k: int,
    out: Path | None,
    chains: bool = False,
    **limits: Any,
) -> dict[str, Any]:
    """Ask, and write `train.jsonl`, `generations.jsonl` and `manifest.json` to `out`; return the document for --json.

    Queries with an answer too long are left out whole, like those of which a document brought no score.
    """
    pairs = _create_pairs(collection, chosen)
    kinds = {pairs[query, one]: kind for query, drawn in chosen.items() for one, kind in drawn.items()}
    result = synthesize(collection, judge, kinds, k=k, chains=chains, **limits)
    answers = {query: [result.answers.get(pairs[query, one]) for one in drawn] for query, drawn in chosen.items()}
    long = {query for query, found in answers.items() if any(one is not None and one.too_long for one in found)}
    short = {query for query, found in answers.items() if query not in long and None in found}
    rows = [
        (query, document, found)
        for query, drawn in chosen.items()
        if query not in long | short
        for document, found in zip(drawn, answers[query], strict=True)
        if found is not None
    ]
    document = {
        "collection": collection.name,
        "format": "erank-sft",
        "judge": judge,
        "prompt": "score-chain" if chains else "the judge's own",
        "k": k,
        "queries": len({query for query, *_ in rows}),
        "rows": len(rows),
        "dropped": {"too_long": len(long), "no_score": len(short)},
        "lost": result.lost,
        "stopped": result.spent,
        "campaign": result.campaign.number,
        "calls": result.calls,
        "calls_cached": result.cached,
        "cost": result.cost,
    }
    if out is not None:
        _write_dataset(collection, out, rows, document)
    return document


def _write_dataset(
    collection: Collection, out: Path, rows: list[tuple[str, str, ScoredPair]], document: dict[str, Any]
) -> None:
    """The manifest last: a folder with one is whole."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "train.jsonl").open("w") as train, (out / "generations.jsonl").open("w") as every:
        for query, name, found in rows:
            pair = Pair.objects.select_related("query", "document").get(pk=found.pair)
            row = _describe_row(collection, query, name, pair, found)
            train.write(json.dumps(row, ensure_ascii=False) + "\n")
            for place, one in enumerate(found.generations):
                told = {"query_id": query, "doc_id": name, "kind": found.kind, "generation": place}
                told |= {"kept": place == found.kept, "completion": render_answer(one.chain, one.score)}
                told |= {"score": one.score, "tokens": one.tokens}
                every.write(json.dumps(told, ensure_ascii=False) + "\n")
    kept_out = ("campaign", "calls", "calls_cached", "cost")  # of this time, not of the data
    manifest = {key: value for key, value in document.items() if key not in kept_out}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def _describe_row(collection: Collection, query: str, name: str, pair: Pair, found: ScoredPair) -> dict[str, Any]:
    kept = found.generations[found.kept]
    asked, instruction = pair.query, collection.relevance.of(pair.query).statement
    text = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    return {
        "query_id": query,
        "doc_id": name,
        "instruction": instruction,
        "query": asked.text,
        "document": text,
        "chain": kept.chain,
        "prompt": render_prompt(asked.text, text, instruction),
        "completion": render_answer(kept.chain, kept.score),
        "score": kept.score,
        "positive": found.kind == "positive",
        "k": len(found.generations),
        "mean": found.mean,
        "kind": found.kind,
    }


def labelled_documents(collection: Collection) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return by query its relevant documents, and its others: by label, by reference grade where a pair has none."""
    labels = Label.objects.filter(pair__collection=collection, aspect=None).values_list("pair", "grade")
    grades = reference_grades(collection) | dict(labels)
    pairs = Pair.objects.filter(collection=collection, query__is_current=True, document__is_current=True)
    names = pairs.order_by("query__external_id", "document__external_id")
    positives: dict[str, list[str]] = {}
    negatives: dict[str, list[str]] = {}
    for pair, query, document in names.values_list("pk", "query__external_id", "document__external_id"):
        if pair in grades:
            side = positives if grades[pair] >= collection.relevant_from else negatives
            side.setdefault(query, []).append(document)
    return positives, negatives


def _excluded_by_id(collection: Collection) -> dict[str, frozenset[str]]:
    """Return by query id the ids of the documents that it excludes."""
    found = excluded_documents(collection)
    names = Query.objects.filter(pk__in=found, is_current=True).values_list("pk", "external_id")
    return {name: found[key] for key, name in names}


def _from_run(collection: Collection, run: Path, queries: list[str]) -> dict[str, list[str]]:
    """The documents of each query, best first: score, then document id descending. BadInput."""
    scores = read_run(run)
    known = set(Document.objects.filter(collection=collection, is_current=True).values_list("external_id", flat=True))
    if foreign := next((doc for query in queries for doc in scores.get(query, {}) if doc not in known), None):
        raise BadInput(f"{run}: document {foreign!r} is not in {collection.name}: is the run of this collection?")
    return {query: list(scores.get(query, {})) for query in queries}


def _by_bm25(collection: Collection, positives: Mapping[str, list[str]], queries: list[str]) -> dict[str, list[str]]:
    index = index_for(collection)
    texts = Query.objects.filter(collection=collection, is_current=True, external_id__in=queries)
    names = dict(Document.objects.filter(collection=collection, is_current=True).values_list("pk", "external_id"))
    return {
        query: [names[key] for key, _ in index.search(text, DEEPEST + len(positives[query])) if key in names]
        for query, text in texts.values_list("external_id", "text")
    }


def _create_pairs(collection: Collection, chosen: Mapping[str, Drawn]) -> dict[tuple[str, str], int]:
    """Primary keys by query and document id. New pairs are no candidates: nobody judges them."""
    queries = dict(
        Query.objects.filter(collection=collection, is_current=True, external_id__in=chosen).values_list(
            "external_id", "pk"
        )
    )
    wanted = {document for drawn in chosen.values() for document in drawn}
    current = Document.objects.filter(collection=collection, is_current=True)
    documents = {name: pk for name, pk in current.values_list("external_id", "pk") if name in wanted}
    rows = [
        Pair(collection=collection, query_id=queries[query], document_id=documents[document], is_candidate=False)
        for query, drawn in chosen.items()
        for document in drawn
    ]
    # Pairs that exist keep what they are; their keys are read back with the new ones.
    Pair.objects.bulk_create(rows, ignore_conflicts=True)
    known = Pair.objects.filter(collection=collection, query__in=queries.values())
    keys = {(query, document): pk for query, document, pk in known.values_list("query", "document", "pk")}
    return {
        (query, document): keys[queries[query], documents[document]]
        for query, drawn in chosen.items()
        for document in drawn
    }
