"""Queries that a judge writes: keyword forms of training queries (Prism 4.1), and queries that documents answer.

Each becomes a new query with documents that BM25 finds for its words, to be judged like all others.
It is marked synthetic, so that it never enters dev or qrels; a keyword form names its query
(`rewritten_from`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.runs.rankings import EXCLUDED, excluded_documents
from benchmark.synthesis.bundles import draw_seeds, query_id_of
from benchmark.synthesis.conversation import SeedOutcome, describe_model
from benchmark.synthesis.seeds import Seed, collection_seeds
from corpus.collections.exported_sets import read_manifests
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.formats.json_objects import json_lines
from corpus.importing.made_rows import import_rows
from corpus.models import Collection, Document, Query
from corpus.reader_time import format_time
from corpus.search.bm25 import index_for
from judges.conversations.requests import Conversation, ConversationStep
from judges.domain.verdicts import NoVerdict
from judges.prompts.answers.formats import FORMATS
from judges.prompts.synthesis import ask_prompt, query_prompt
from judges.records import Judge, Prompt
from store.files import fetch

SAMPLED = 50  # Prompts that an estimate looks at.
WITH_QUERY_IDS = ("prism", "rtriever", "erank-sft")  # Formats of training sets whose rows name their query.
PRESENT = "present"  # Reason of a skipped seed: a query was written from it before, and stays as it is.


@dataclass(frozen=True, slots=True)
class WritingMethod:
    """A method of writing queries."""

    role: str
    material: str  # The kind of text that the prompt contains.
    prompt: Callable[[str], Prompt]
    made_from: str  # The metadata key for the id of the source.
    likely: int  # Expected tokens of an answer.


KEYWORDS = WritingMethod("keywords", "query", partial(query_prompt, "query-keywords"), "rewritten_from", 40)
ASK = WritingMethod("ask", "document", ask_prompt, "asked_of", 40)
METHODS = {Synthesis.Product.KEYWORDS.value: KEYWORDS, Synthesis.Product.ASK.value: ASK}


def list_training_sets(collection: Collection) -> list[tuple[Path, str]]:
    """Return folder and label of the collection's exports whose queries can be rewritten, the newest first."""
    training_sets = []
    for folder, manifest, exported_at in read_manifests(collection):
        # Queries that a model wrote are not rewritten again.
        if manifest.get("format") not in WITH_QUERY_IDS or manifest.get("synthetic"):
            continue
        label_values = {"self": format_time(exported_at, "MONTH_DAY_TIME_FORMAT"), "format": manifest["format"]}
        label_values |= {name: f"{manifest.get('counts', {}).get(name, 0):,}" for name in ("rows", "queries")}
        label = _("%(self)s: format %(format)s, %(rows)s rows from %(queries)s queries") % label_values
        training_sets.append((folder, label))
    return training_sets


def choose_training_queries(collection: Collection, folder: Path, *, share: float, seed: int) -> list[Seed]:
    """Draw a share of the queries in a training set. Raises BadInput.

    Queries that are also in another split of the folder, or that a model wrote, are left out.
    """
    fetch(folder)
    training_ids = _query_ids(folder / "train.jsonl")
    # A keyword form of a query in dev or test would let that query leak into training.
    for split in ("dev", "test"):
        if (path := folder / f"{split}.jsonl").exists():
            training_ids -= _query_ids(path)
    training_seeds = [query for query in collection_seeds(collection) if query.id in training_ids]
    count = round(share * len(training_seeds))
    if not count:
        values = {"folder": folder.name, "queries": f"{len(training_seeds):,}", "name": collection.name}
        raise BadInput(_("%(folder)s: %(queries)s training queries of %(name)s: too few for this share") % values)
    drawn_ids = set(draw_seeds((query.id for query in training_seeds), seed, count))
    return [query for query in training_seeds if query.id in drawn_ids]


def _query_ids(path: Path) -> set[str]:
    query_ids = set()
    source = FileSource(path)
    for number, row in json_lines(source):
        if not isinstance(row.get("query_id"), str):
            raise source.bad(number, _('it has no "query_id": give a set in the format prism, rtriever or erank-sft'))
        query_ids.add(row["query_id"])
    return query_ids


def choose_documents(collection: Collection, *, limit: int, seed: int) -> list[Seed]:
    """Draw `limit` documents of the collection that no model wrote. Raises BadInput."""
    current = Document.objects.filter(collection=collection, is_current=True).exclude(text="")
    # From a synthetic passage, a model would write a query for a model's text.
    current = current.exclude(metadata__contains={"synthetic": True})
    names = list(current.order_by("external_id").values_list("external_id", flat=True))
    if not names:
        raise BadInput(_("%(name)s has no document to write a query from") % {"name": collection.name})
    drawn = current.filter(external_id__in=draw_seeds(names, seed, limit)).order_by("external_id")
    # Negative, since calls about documents are stored in the column of queries.
    return [
        Seed(document.external_id, f"{document.title}\n{document.text}".strip(), -document.pk) for document in drawn
    ]


def used_sources(collection: Collection, method: WritingMethod) -> set[str]:
    """Return the ids of the sources from which current queries were written by this method."""
    rows = Query.objects.filter(collection=collection, is_current=True, metadata__has_key=method.made_from)
    return set(rows.values_list(f"metadata__{method.made_from}", flat=True))


async def write_query(conversation: Conversation, method: WritingMethod, source: Seed, judge: Judge) -> SeedOutcome:
    """Return the query written from a source, or why there is none. Raises Cancelled and BudgetExhausted."""
    prompt = method.prompt(source.text)
    step = ConversationStep(method.role, FORMATS[method.role], judge, prompt, material={method.material: source.text})
    reply = await conversation.ask(step)
    if isinstance(reply, NoVerdict):
        return SeedOutcome(step=method.role, reason=reply.outcome, problem=conversation.problem_with(step))
    answer = reply.model_dump()
    text = str(answer["query"]) if "query" in answer else " ".join(answer["keywords"])
    bundle = {
        "query_id": query_id_of(f"{method.role} {source.id}", text),
        "query": text,
        method.made_from: source.id,
        "synthetic": True,
        "models": {"judge": describe_model(judge)},
        "prompts": {prompt.name: prompt.sha256},
    }
    return SeedOutcome(bundle)


def import_synthetic(synthesis: Synthesis, rows: Iterable[SyntheticBundle]) -> None:
    """Import the queries of these rows, and pairs with the documents that BM25 finds for their words; no labels.

    A source from which a query has been imported before is left out.
    """
    collection, method = synthesis.collection, METHODS[synthesis.kind]
    # Looked up at the time of the import, since another synthesis may have been faster.
    written_sources = used_sources(collection, method)
    bundles = [
        row.bundle for row in rows if row.bundle is not None and row.bundle[method.made_from] not in written_sources
    ]
    if not bundles:
        return
    sources: dict[str, dict[str, Any]] = {}
    if method is KEYWORDS:
        # A keyword form states the same need as its query in other words. So it has the same answers and relevance
        # definition, or one pair would be judged by two rubrics, and it excludes the same documents.
        made_from = [bundle[KEYWORDS.made_from] for bundle in bundles]
        queries = list(Query.objects.filter(collection=collection, is_current=True, external_id__in=made_from))
        excluded = excluded_documents(collection, {query.pk: query.external_id for query in queries})
        sources = {
            query.external_id: {
                "answers": query.answers,
                "instruction": query.instruction,
                "metadata": {EXCLUDED: sorted(excluded[query.pk])} if query.pk in excluded else {},
            }
            for query in queries
        }
    query_rows = []
    for bundle in bundles:
        made_from = bundle[method.made_from]
        metadata = {"synthetic": True, "writer": bundle["models"]["judge"]["name"], method.made_from: made_from}
        if method is KEYWORDS:
            metadata["seed_query"] = made_from
        query_row = {"_id": bundle["query_id"], "text": bundle["query"], "metadata": metadata}
        if source := sources.get(made_from):
            query_row |= {"answers": source["answers"], "instruction": source["instruction"]}
            metadata |= source["metadata"]
        query_rows.append(query_row)
    index, depth = index_for(collection), synthesis.options["pairs"]
    names = dict(Document.objects.filter(collection=collection, is_current=True).values_list("pk", "external_id"))
    pairs = []
    for query in query_rows:
        # The document that a query was written from is always paired with it, even if BM25 does not find it.
        first = [query["metadata"][method.made_from]] if method is ASK else []
        excluded = query["metadata"].get(EXCLUDED, [])
        hits = (names[key] for key, _score in index.search(query["text"], depth + len(excluded)) if key in names)
        best = [name for name in hits if name not in excluded][:depth]
        pairs += [{"query_id": query["_id"], "doc_id": name} for name in dict.fromkeys([*first, *best])]
    import_rows(collection, queries=query_rows, pairs=pairs)
