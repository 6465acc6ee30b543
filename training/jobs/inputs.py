"""Inputs of a job's subprocess, which has no database: pairs and qrels, written as files."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from benchmark.runs.rankings import excluded_documents, names_of, scores_of
from corpus.errors import BadInput
from corpus.models import Collection, Document, Label, Pair, Query
from corpus.search.bm25 import index_for
from training.jobs import first_stage
from training.jobs.first_stage import PAIRS, QRELS
from training.models import Job
from training.recipes import data
from training.recipes.job_folder import JobFolder, write_atomically
from training.recipes.metrics import held_out_queries
from training.recipes.table import RECIPES

DEPTH = 50  # Documents of each query, unless the job's options set it.
BATCH = 2000
PRISM_READER = RECIPES["prism"].reader  # For a folder without a known format: it raises the error that explains it.


def write_inputs(job: Job, folder: JobFolder) -> None:
    """Write the job's input pairs, unless an earlier attempt did. Raises BadInput if there are none."""
    # The scores of an earlier attempt belong to its pairs, so the pairs stay as they are.
    if job.kind == Job.Kind.GENERATE or (folder.path / PAIRS).exists():
        return
    # The pairs of a training are those of the first stage that it is compared with, which needs a collection.
    # A point of a learning curve is compared with the other points only.
    if job.kind == Job.Kind.TRAIN and (job.collection is None or job.options.get("subset")):
        return
    if job.collection is None:
        raise BadInput(_("The job belongs to no collection. Start it from a model's page"))
    lines = list(_open_pairs(job.collection) if job.kind == Job.Kind.ORDER else _candidates(job, job.collection))
    if not lines and job.kind == Job.Kind.TRAIN:
        return
    if not lines:
        raise BadInput(NOTHING[job.kind])
    if job.kind in MEASURED:
        labels = Label.objects.filter(
            pair__collection=job.collection,
            pair__query__external_id__in=[line["query_id"] for line in lines],
            pair__query__is_current=True,
            pair__document__is_current=True,
            aspect=None,
        ).values_list("pair__query__external_id", "pair__document__external_id", "grade")
        qrels: dict[str, dict[str, int]] = {}
        for query, document, grade in labels.iterator():
            # Grades below 0 (not judged) count as 0 in measures.
            qrels.setdefault(query, {})[document] = max(0, grade)
        write_atomically(folder.path / QRELS, json.dumps(qrels))
    # Written last: if the pairs exist, so do the other files.
    write_atomically(folder.path / PAIRS, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


MEASURED = (Job.Kind.TRAIN, Job.Kind.EVALUATE, Job.Kind.LOSSES)  # Kinds that are measured on the dev split's queries.
NO_DEV = "No query of the dev split has a relevant document: export with a smaller split"
NOTHING: dict[str, str] = {
    Job.Kind.LOSSES: NO_DEV,
    Job.Kind.EVALUATE: NO_DEV,
    Job.Kind.RERANK: "the collection has no query: import one first",
    Job.Kind.ORDER: "nothing waits for people: there is no item to order",
}


def _candidates(job: Job, collection: Collection) -> Iterable[dict[str, Any]]:
    """Yield a line with the first documents of each query: the dev split's for the MEASURED kinds, else all."""
    queries = Query.objects.filter(collection=collection, is_current=True).order_by("external_id")
    relevant = Label.objects.filter(
        pair__collection=collection, pair__document__is_current=True, aspect=None, grade__gte=collection.relevant_from
    )
    # Only queries that were used neither for training nor for choosing the checkpoint, if there are any.
    if job.kind in MEASURED:
        query_ids = sorted(dev_queries(Path(job.options["data"]))[0])
        # Without a relevant document, a query's nDCG is undefined.
        judged = relevant.filter(pair__query__external_id__in=query_ids)
        queries = queries.filter(external_id__in=query_ids, pk__in=judged.values("pair__query"))
    if job.kind == Job.Kind.TRAIN:
        queries = queries[: first_stage.QUERIES]
    search = _search_of(job, collection)
    for query in queries.iterator():
        scored = search(query)
        # As in Prism's ablation, all relevant documents are ranked, even if the run does not contain them.
        if job.kind == Job.Kind.LOSSES:
            relevant_pks = (
                relevant.filter(pair__query=query).values_list("pair__document", flat=True).order_by("pair__document")
            )
            scored = [*scored, *((pk, 0.0) for pk in relevant_pks if pk not in dict(scored))]
        documents = Document.objects.in_bulk([pk for pk, _score in scored])
        ranked = [(documents[pk], score) for pk, score in scored if pk in documents]
        if ranked:
            yield _query_line(collection, query, ranked)


def _search_of(job: Job, collection: Collection) -> Callable[[Query], list[tuple[int, float]]]:
    """Return a function that returns a query's first documents and their scores: of the job's run, or of BM25."""
    default_depth = first_stage.DEPTH if job.kind == Job.Kind.TRAIN else DEPTH
    depth = int(job.options.get("depth") or default_depth)
    if not (run := job.options.get("run")):
        index, excluded_by_query = index_for(collection), excluded_documents(collection)

        def search_bm25(query: Query) -> list[tuple[int, float]]:
            excluded = excluded_by_query.get(query.pk, frozenset())
            scored = index.search(query.text, depth + len(excluded))
            # As in runs, no ranking may contain documents that the query excludes (BRIGHT).
            names = names_of(pk for pk, _score in scored) if excluded else {}
            return [(pk, score) for pk, score in scored if names.get(pk) not in excluded][:depth]

        return search_bm25
    run_scores = scores_of(int(run))

    def search_run(query: Query) -> list[tuple[int, float]]:
        if query.pk not in run_scores:
            return []
        documents, scores = run_scores[query.pk]
        return list(zip(documents[:depth].tolist(), scores[:depth].tolist(), strict=True))

    return search_run


def dev_queries(folder: Path) -> tuple[set[str], bool]:
    """Return the dev queries to compare rankings on, and whether they are held out.

    If there are too few to hold any out, they are all dev queries, which chose the checkpoint, so the comparison
    favours the tuned model.
    """
    readers = {recipe.format: recipe.reader for recipe in RECIPES.values()}
    dev = import_string(readers.get(data.named_format(folder), PRISM_READER))(folder).dev
    held_out = held_out_queries(dev)
    return (held_out, True) if held_out else ({row.query_id for row in dev}, False)


def _open_pairs(collection: Collection) -> Iterable[dict[str, Any]]:
    """Yield a line for each query with the documents of its pairs that wait for people."""
    pairs = (
        Pair.objects.filter(collection=collection, items__state="open")
        .select_related("query", "document")
        .order_by("query_id", "pk")
        .distinct()
    )
    for query, group in groupby(pairs.iterator(BATCH), key=attrgetter("query")):
        yield _query_line(collection, query, [(pair.document, 0.0) for pair in group])


def _query_line(collection: Collection, query: Query, documents: Sequence[tuple[Document, float]]) -> dict[str, Any]:
    return {
        "query_id": query.external_id,
        "query": query.text,
        "instruction": collection.relevance.of(query).statement,
        "documents": [
            {"doc_id": document.external_id, "text": full_text(document), "score": score}
            for document, score in documents
        ],
    }


def full_text(document: Document) -> str:
    """Return a document's title and text, in the form of training sets."""
    return f"{document.title}\n{document.text}" if document.title else document.text
