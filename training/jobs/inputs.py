"""Inputs of a job's subprocess from the database, as files: it has no database itself."""

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
from training.jobs.folder import JobFolder, write_atomically
from training.models import Job
from training.recipes import data
from training.recipes.metrics import kept_apart
from training.recipes.table import RECIPES

DEPTH = 50  # Documents of each query, unless the job says how many.
BATCH = 2000
PRISM_READER = RECIPES["prism"].reader  # It names what is wrong with a folder that is no set.


def write_inputs(job: Job, folder: JobFolder) -> None:
    """Write the job's input pairs, unless an earlier claim did. Raises BadInput if none."""
    # What an earlier claim scored belongs to its pairs: they are not written again.
    if job.kind == Job.Kind.GENERATE or (folder.path / PAIRS).exists():
        return
    # A training has its set: what it is compared with is in the collection, if that is here. A
    # point of a curve is compared with the other points alone.
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
        qrels = _load_qrels(job.collection, [line["query_id"] for line in lines])
        write_atomically(folder.path / QRELS, json.dumps(qrels))
    # Last, because whoever finds the pairs takes everything else to be there, too.
    write_atomically(folder.path / PAIRS, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


MEASURED = (Job.Kind.TRAIN, Job.Kind.EVALUATE, Job.Kind.LOSSES)  # Measured on the dev split's queries.
NO_DEV = "No query of the dev split has a relevant document: export with a smaller split"
NOTHING: dict[str, str] = {
    Job.Kind.LOSSES: NO_DEV,
    Job.Kind.EVALUATE: NO_DEV,
    Job.Kind.RERANK: "the collection has no query: import one first",
    Job.Kind.ORDER: "nothing waits for people: there is no item to order",
}


def _candidates(job: Job, collection: Collection) -> Iterable[dict[str, Any]]:
    """Yield queries' first documents: the dev split's for what is measured, else all."""
    queries = Query.objects.filter(collection=collection, is_current=True).order_by("external_id")
    relevant = Label.objects.filter(
        pair__collection=collection, pair__document__is_current=True, aspect=None, grade__gte=collection.relevant_from
    )
    # Only queries that had no part in training or choosing, where there are some.
    if job.kind in MEASURED:
        wanted = sorted(dev_queries(Path(job.options["data"]))[0])
        # A query without a relevant document has no nDCG, and cannot tell two rankings apart.
        judged = relevant.filter(pair__query__external_id__in=wanted)
        queries = queries.filter(external_id__in=wanted, pk__in=judged.values("pair__query"))
    if job.kind == Job.Kind.TRAIN:
        queries = queries[: first_stage.QUERIES]
    search = _search_of(job, collection)
    for query in queries.iterator():
        found = search(query)
        if job.kind == Job.Kind.LOSSES:  # As in Prism's ablation, relevant documents are ranked whatever the run says.
            added = (
                relevant.filter(pair__query=query).values_list("pair__document", flat=True).order_by("pair__document")
            )
            found = [*found, *((pk, 0.0) for pk in added if pk not in dict(found))]
        documents = Document.objects.in_bulk([pk for pk, _ in found])
        ranked = [(documents[pk], score) for pk, score in found if pk in documents]
        if ranked:
            yield _query_line(collection, query, ranked)


def _search_of(job: Job, collection: Collection) -> Callable[[Query], list[tuple[int, float]]]:
    """Return what gives a query's first documents: the run that the job names, or BM25."""
    usual = first_stage.DEPTH if job.kind == Job.Kind.TRAIN else DEPTH
    depth = int(job.options.get("depth") or usual)
    if not (run := job.options.get("run")):
        index, left_out = index_for(collection), excluded_documents(collection)

        def first_by_bm25(query: Query) -> list[tuple[int, float]]:
            excluded = left_out.get(query.pk, frozenset())
            found = index.search(query.text, depth + len(excluded))
            # As in runs: no system may return what the query excludes (BRIGHT), so no ranking is measured with it.
            names = names_of(key for key, _score in found) if excluded else {}
            return [(key, score) for key, score in found if names.get(key) not in excluded][:depth]

        return first_by_bm25
    stored = scores_of(int(run))

    def first_of_run(query: Query) -> list[tuple[int, float]]:
        if query.pk not in stored:
            return []
        documents, scores = stored[query.pk]
        return list(zip(documents[:depth].tolist(), scores[:depth].tolist(), strict=True))

    return first_of_run


def dev_queries(folder: Path) -> tuple[set[str], bool]:
    """Return the queries to compare rankings on: dev queries that had no say in choosing the checkpoint, and True.

    Where they are too few for that: all of the dev split, and False, because the comparison favours the tuned model.
    """
    reader = next((one.reader for one in RECIPES.values() if one.format == data.named_format(folder)), PRISM_READER)
    dev = import_string(reader)(folder).dev
    apart = kept_apart(dev)
    return (apart, True) if apart else ({one.query_id for one in dev}, False)


def _open_pairs(collection: Collection) -> Iterable[dict[str, Any]]:
    """Return a line for each query whose pairs have items that wait for people."""
    pairs = (
        Pair.objects.filter(collection=collection, items__state="open")
        .select_related("query", "document")
        .order_by("query_id", "pk")
        .distinct()
    )
    for query, several in groupby(pairs.iterator(BATCH), key=attrgetter("query")):
        yield _query_line(collection, query, [(pair.document, 0.0) for pair in several])


def _query_line(collection: Collection, query: Query, documents: Sequence[tuple[Document, float]]) -> dict[str, Any]:
    return {
        "query_id": query.external_id,
        "query": query.text,
        "instruction": collection.relevance.of(query).statement,
        "documents": [{"doc_id": one.external_id, "text": full_text(one), "score": score} for one, score in documents],
    }


def full_text(document: Document) -> str:
    """Return a document's title and text as training sets have them."""
    return f"{document.title}\n{document.text}" if document.title else document.text


def _load_qrels(collection: Collection, queries: Sequence[str]) -> dict[str, dict[str, int]]:
    rows = Label.objects.filter(
        pair__collection=collection,
        pair__query__external_id__in=queries,
        pair__query__is_current=True,
        pair__document__is_current=True,
        aspect=None,
    ).values_list("pair__query__external_id", "pair__document__external_id", "grade")
    found: dict[str, dict[str, int]] = {}
    for query, document, grade in rows.iterator():
        # Grades below 0 (not judged) count 0 in measures.
        found.setdefault(query, {})[document] = max(0, grade)
    return found
