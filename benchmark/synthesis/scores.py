"""Scores as training data: documents drawn for each query, each scored k times by a judge (ERank 3.2, C)."""

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
# Positions, from 0, among the documents of a run that are not relevant. All hard ones are taken; the
# rest is drawn in equal parts from the medium and easy ones (ERank C).
HARD, MEDIUM, EASY = slice(0, 10), slice(10, 100), slice(100, 1000)
DOCUMENTS = 20
Drawn = dict[str, str]  # The documents of a query, and why each was taken.


def draw_documents(
    positives: Sequence[str], negatives: Sequence[str], ranked: Sequence[str], *, seed: str, number: int = DOCUMENTS
) -> Drawn:
    """Draw up to `number` documents, each with why it was taken: positive, negative, hard, medium or easy.

    Every positive is taken (the paper has one per query). Ranks are positions in `ranked` without
    the positives. The same seed draws the same documents.
    """
    drawn = dict.fromkeys(positives, "positive")
    for document in negatives:
        drawn.setdefault(document, "negative")
    ranked = [document for document in ranked if drawn.get(document) != "positive"]
    for document in ranked[HARD]:
        drawn.setdefault(document, "hard")
    taken = dict(islice(drawn.items(), max(number, len(set(positives)))))
    remaining = number - len(taken)
    if remaining <= 0:
        return taken
    random = Random(seed)
    medium = [document for document in ranked[MEDIUM] if document not in drawn]
    easy = [document for document in ranked[EASY] if document not in drawn]
    # If one range of ranks is short, more are drawn from the other.
    medium_count = min(len(medium), max((remaining + 1) // 2, remaining - len(easy)))
    easy_count = min(len(easy), remaining - medium_count)
    taken |= dict.fromkeys(random.sample(medium, medium_count), "medium")
    return taken | dict.fromkeys(random.sample(easy, easy_count), "easy")


def draw_by_query(
    collection: Collection, run: Path | None, *, number: int, queries: int | None, seed: int
) -> dict[str, Drawn]:
    """Draw the documents to score for queries with a relevant document, by query id.

    They come from the file `run`, or from BM25 without one. Raises BadInput if no query has a relevant document.
    """
    positives, negatives = labelled_documents(collection)
    query_ids = sorted(positives)
    if not query_ids:
        raise BadInput(f"{collection.name} has no relevant pair: label some, or import qrels, first")
    if queries is not None:
        query_ids = sorted(Random(f"queries {seed}").sample(query_ids, min(queries, len(query_ids))))
    documents = dict(Document.objects.filter(collection=collection, is_current=True).values_list("pk", "external_id"))
    if run:
        scores, names = read_run(run), set(documents.values())
        foreign = next((name for query in query_ids for name in scores.get(query, {}) if name not in names), None)
        if foreign:
            raise BadInput(f"{run}: document {foreign!r} is not in {collection.name}: is the run of this collection?")
        # Best first: by score, then by document id descending.
        ranked = {query: list(scores.get(query, {})) for query in query_ids}
    else:
        index = index_for(collection)
        texts = Query.objects.filter(collection=collection, is_current=True, external_id__in=query_ids)
        ranked = {
            query: [
                documents[key]
                for key, _score in index.search(text, DEEPEST + len(positives[query]))
                if key in documents
            ]
            for query, text in texts.values_list("external_id", "text")
        }
    excluded = excluded_documents(collection)
    excluding = Query.objects.filter(pk__in=excluded, is_current=True).values_list("pk", "external_id")
    excluded_by_id = {name: excluded[key] for key, name in excluding}
    drawn_by_query = {}
    for query in query_ids:
        # Documents that a query excludes (BRIGHT) are no negatives: no system may return them, relevant or not.
        candidates = [name for name in ranked.get(query, []) if name not in excluded_by_id.get(query, ())]
        arguments = positives[query], negatives.get(query, []), candidates
        drawn_by_query[query] = draw_documents(*arguments, seed=f"{seed} {query}", number=number)
    return drawn_by_query


def make_scores(
    collection: Collection,
    drawn_by_query: Mapping[str, Drawn],
    *,
    judge: str,
    k: int,
    out: Path | None,
    chains: bool = False,
    **limits: Any,
) -> dict[str, Any]:
    """Score the drawn documents, write them to the folder `out`, and return the document for `--json`.

    `out` gets `train.jsonl`, `generations.jsonl` and `manifest.json`. A query is left out if an
    answer about one of its documents is too long or has no score.
    """
    pairs = _create_pairs(collection, drawn_by_query)
    kinds = {
        pairs[query, document]: kind for query, drawn in drawn_by_query.items() for document, kind in drawn.items()
    }
    result = synthesize(collection, judge, kinds, k=k, chains=chains, **limits)
    answers = {
        query: [result.answers.get(pairs[query, document]) for document in drawn]
        for query, drawn in drawn_by_query.items()
    }
    long = {
        query
        for query, query_answers in answers.items()
        if any(answer is not None and answer.too_long for answer in query_answers)
    }
    short = {query for query, query_answers in answers.items() if query not in long and None in query_answers}
    rows = [
        (query, document, answer)
        for query, drawn in drawn_by_query.items()
        if query not in long | short
        for document, answer in zip(drawn, answers[query], strict=True)
        if answer is not None
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
    """Write the files of the dataset, the manifest last: a folder with a manifest is complete."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "train.jsonl").open("w") as train, (out / "generations.jsonl").open("w") as generations:
        for query, name, answer in rows:
            pair = Pair.objects.select_related("query", "document").get(pk=answer.pair)
            generation = answer.generations[answer.kept]
            query_row, instruction = pair.query, collection.relevance.of(pair.query).statement
            text = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
            row = {
                "query_id": query,
                "doc_id": name,
                "instruction": instruction,
                "query": query_row.text,
                "document": text,
                "chain": generation.chain,
                "prompt": render_prompt(query_row.text, text, instruction),
                "completion": render_answer(generation.chain, generation.score),
                "score": generation.score,
                "positive": answer.kind == "positive",
                "k": len(answer.generations),
                "mean": answer.mean,
                "kind": answer.kind,
            }
            train.write(json.dumps(row, ensure_ascii=False) + "\n")
            for number, generation in enumerate(answer.generations):
                generation_row = {"query_id": query, "doc_id": name, "kind": answer.kind, "generation": number}
                generation_row |= {
                    "kept": number == answer.kept,
                    "completion": render_answer(generation.chain, generation.score),
                }
                generation_row |= {"score": generation.score, "tokens": generation.tokens}
                generations.write(json.dumps(generation_row, ensure_ascii=False) + "\n")
    # The manifest describes the data, not this run of the command.
    left_out = ("campaign", "calls", "calls_cached", "cost")
    manifest = {key: value for key, value in document.items() if key not in left_out}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def labelled_documents(collection: Collection) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the relevant and the other documents of each query, by label or, without one, by reference grade."""
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


def _create_pairs(collection: Collection, drawn_by_query: Mapping[str, Drawn]) -> dict[tuple[str, str], int]:
    """Return the primary keys of the pairs by query and document id; new pairs are not queued for judging."""
    queries = dict(
        Query.objects.filter(collection=collection, is_current=True, external_id__in=drawn_by_query).values_list(
            "external_id", "pk"
        )
    )
    document_ids = {document for drawn in drawn_by_query.values() for document in drawn}
    current = Document.objects.filter(collection=collection, is_current=True)
    documents = {name: pk for name, pk in current.values_list("external_id", "pk") if name in document_ids}
    rows = [
        Pair(collection=collection, query_id=queries[query], document_id=documents[document], is_candidate=False)
        for query, drawn in drawn_by_query.items()
        for document in drawn
    ]
    # Existing pairs are not changed; their keys are read back with the new ones.
    Pair.objects.bulk_create(rows, ignore_conflicts=True)
    existing_pairs = Pair.objects.filter(collection=collection, query__in=queries.values())
    keys = {(query, document): pk for query, document, pk in existing_pairs.values_list("query", "document", "pk")}
    return {
        (query, document): keys[queries[query], documents[document]]
        for query, drawn in drawn_by_query.items()
        for document in drawn
    }
