"""Queries that a judge writes: keyword forms of training queries (Prism 4.1), and queries that documents answer.

Each is a query of its own, with documents of its own that BM25 finds for its own words, to be
judged like all others. It is marked synthetic, so that it never enters dev or qrels; a keyword form
names its query (`rewritten_from`).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.runs.rankings import EXCLUDED, excluded_documents
from benchmark.synthesis.bundles import draw_seeds, query_id_of
from benchmark.synthesis.conversation import SeedOutcome, describe_model
from benchmark.synthesis.seeds import Seed, collection_seeds
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.formats.json_objects import json_lines
from corpus.importing.made_rows import import_rows
from corpus.models import Collection, Document, Pair, Query
from corpus.search.bm25 import index_for
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.conversations.formats import FORMATS, schema_of
from judges.conversations.requests import Conversation, Step
from judges.costs.token_mixes import mixes_of
from judges.domain.verdicts import NoVerdict
from judges.prompts.synthesis import ask_prompt, query_prompt
from judges.records import Judge, Prompt
from store.files import fetch, fetch_matching

SAMPLED = 50  # Prompts that an estimate looks at.
WITH_QUERY_IDS = ("prism", "rtriever", "erank-sft")  # Formats of training sets whose rows name their query.
PRESENT = "present"  # Why nothing was asked: a query was written from this seed before, and keeps the form that it has.


@dataclass(frozen=True, slots=True)
class Way:
    """A way to write queries. `made_from`: metadata key of what a query was written from."""

    role: str
    material: str  # What the prompt is made of.
    prompt: Callable[[str], Prompt]
    made_from: str
    likely: int  # Expected tokens of an answer.


KEYWORDS = Way("keywords", "query", partial(query_prompt, "query-keywords"), "rewritten_from", 40)
ASK = Way("ask", "document", ask_prompt, "asked_of", 40)
WAYS = {Synthesis.Product.KEYWORDS.value: KEYWORDS, Synthesis.Product.ASK.value: ASK}


def choose_sources(
    collection: Collection, kind: str, options: Mapping[str, Any], seed: int
) -> tuple[dict[str, Any], list[Seed]]:
    """The options of a kind, completed, and what its queries are written from. Raises BadInput."""
    pairs = options.get("pairs", 20)
    if kind == Synthesis.Product.KEYWORDS:
        share, source = options.get("share", 0.3), options["source"]
        # A page knows a training set by its name.
        named = {folder.name: folder for folder, _label in list_training_sets(collection)}
        seeds = choose_training_queries(collection, named.get(source) or Path(source), share=share, seed=seed)
        return {"pairs": pairs, "share": share}, seeds
    return {"pairs": pairs}, choose_documents(collection, limit=options["limit"], seed=seed)


def list_training_sets(collection: Collection) -> list[tuple[Path, str]]:
    """Folder and label of the collection's exports whose queries can be rewritten, newest first."""
    found = []
    paths = fetch_matching(Path(settings.VAR) / "exports" / collection.name, "*/manifest.json")
    for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # An export that is being written, or was removed meanwhile, is left out of the list.
            continue
        # What a model wrote is not rewritten once more.
        if manifest.get("format") not in WITH_QUERY_IDS or manifest.get("synthetic"):
            continue
        made = datetime.fromtimestamp(path.stat().st_mtime, timezone.get_current_timezone())
        told = {"self": date_format(made, "MONTH_DAY_TIME_FORMAT"), "format": manifest["format"]}
        told |= {name: f"{manifest.get('counts', {}).get(name, 0):,}" for name in ("rows", "queries")}
        label = _("%(self)s: format %(format)s, %(rows)s rows from %(queries)s queries") % told
        found.append((path.parent, label))
    return found


def choose_training_queries(collection: Collection, folder: Path, *, share: float, seed: int) -> list[Seed]:
    """A seeded share of the queries that a training set trains on. Raises BadInput.

    A query that also stands in another split of the folder is none of them; neither is one that a model wrote.
    """
    fetch(folder)
    trained = _query_ids(folder / "train.jsonl")
    # A keyword form of a query in dev or test would let that query leak into training.
    for split in ("dev", "test"):
        if (path := folder / f"{split}.jsonl").exists():
            trained -= _query_ids(path)
    known = [one for one in collection_seeds(collection) if one.id in trained]
    count = round(share * len(known))
    if not count:
        told = {"folder": folder.name, "queries": f"{len(known):,}", "name": collection.name}
        raise BadInput(_("%(folder)s: %(queries)s training queries of %(name)s: too few for this share") % told)
    chosen = set(draw_seeds((one.id for one in known), seed, count))
    return [one for one in known if one.id in chosen]


def _query_ids(path: Path) -> set[str]:
    found = set()
    source = FileSource(path)
    for number, row in json_lines(source):
        if not isinstance(row.get("query_id"), str):
            raise source.bad(number, _('it has no "query_id": give a set in the format prism, rtriever or erank-sft'))
        found.add(row["query_id"])
    return found


def choose_documents(collection: Collection, *, limit: int, seed: int) -> list[Seed]:
    """Draw `limit` documents of the collection, none that a model wrote. Raises BadInput."""
    current = Document.objects.filter(collection=collection, is_current=True).exclude(text="")
    # A query of a synthetic passage would be a model's answer to a model.
    current = current.exclude(metadata__contains={"synthetic": True})
    names = list(current.order_by("external_id").values_list("external_id", flat=True))
    if not names:
        raise BadInput(_("%(name)s has no document to write a query from") % {"name": collection.name})
    drawn = current.filter(external_id__in=draw_seeds(names, seed, limit)).order_by("external_id")
    # Below 0: calls about documents are kept where those about queries are.
    return [Seed(one.external_id, f"{one.title}\n{one.text}".strip(), -one.pk) for one in drawn]


def estimate_queries(collection: Collection, kind: str, judge: Judge, sources: Sequence[Seed]) -> Estimate:
    """Estimate the calls and cost of writing the queries that are not there yet."""
    way = WAYS[kind]
    known = known_sources(collection, way)
    waiting = [one for one in sources if one.id not in known]
    sample = [way.prompt(one.text) for one in waiting[:SAMPLED]]
    mix = mixes_of([judge]).get(judge.id, NO_MIX)
    return of_calls(judge, len(waiting), sample, schema_of(FORMATS[way.role]), way.likely, mix)


def known_sources(collection: Collection, way: Way) -> set[str]:
    """Ids of what some current query was written from in this way."""
    rows = Query.objects.filter(collection=collection, is_current=True, metadata__has_key=way.made_from)
    return set(rows.values_list(f"metadata__{way.made_from}", flat=True))


async def write_query(conversation: Conversation, way: Way, source: Seed, judge: Judge) -> SeedOutcome:
    """The query that is written of a source, or why there is none. Lets Cancelled and BudgetExhausted through."""
    prompt = way.prompt(source.text)
    step = Step(way.role, FORMATS[way.role], judge, prompt, material={way.material: source.text})
    said = await conversation.ask(step)
    if isinstance(said, NoVerdict):
        return SeedOutcome(step=way.role, reason=said.outcome, problem=conversation.problem_with(step))
    answer = said.model_dump()
    text = str(answer["query"]) if "query" in answer else " ".join(answer["keywords"])
    bundle = {
        "query_id": query_id_of(f"{way.role} {source.id}", text),
        "query": text,
        way.made_from: source.id,
        "synthetic": True,
        "models": {"judge": describe_model(judge)},
        "prompts": {prompt.name: prompt.sha256},
    }
    return SeedOutcome(bundle)


def import_synthetic(synthesis: Synthesis, rows: Iterable[SyntheticBundle]) -> None:
    """Import the queries of these rows, with the documents that BM25 finds for their own words. No label comes along.

    A query that is in the collection already, or another one that was written from the same source, is left as it is.
    """
    way = WAYS[synthesis.kind]
    known = known_sources(synthesis.collection, way)
    # Known once more at the moment of the import: another synthesis may have come first.
    bundles = [one.bundle for one in rows if one.bundle is not None and one.bundle[way.made_from] not in known]
    if not bundles:
        return
    sources = _describe_sources(synthesis.collection, bundles) if way is KEYWORDS else {}
    found = [_describe_query(way, one, sources) for one in bundles]
    pairs = _find_pairs(synthesis.collection, way, found, synthesis.options["pairs"])
    import_rows(synthesis.collection, queries=found, pairs=pairs)


def _describe_sources(collection: Collection, bundles: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What keyword forms take over from the queries that they are made of, by query.

    The need is the same in other words: it has the same answers and the same definition of
    relevance, else one pair would be judged by two rubrics, and it excludes the same documents.
    """
    sources = [bundle[KEYWORDS.made_from] for bundle in bundles]
    queries = list(Query.objects.filter(collection=collection, is_current=True, external_id__in=sources))
    excluded = excluded_documents(collection, {query.pk: query.external_id for query in queries})
    return {
        query.external_id: {
            "answers": query.answers,
            "instruction": query.instruction,
            "metadata": {EXCLUDED: sorted(excluded[query.pk])} if query.pk in excluded else {},
        }
        for query in queries
    }


def _describe_query(way: Way, bundle: Mapping[str, Any], sources: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    made_from = bundle[way.made_from]
    metadata = {"synthetic": True, "writer": bundle["models"]["judge"]["name"], way.made_from: made_from}
    if way is KEYWORDS:
        metadata["seed_query"] = made_from
    query = {"_id": bundle["query_id"], "text": bundle["query"], "metadata": metadata}
    if source := sources.get(made_from):
        query |= {"answers": source["answers"], "instruction": source["instruction"]}
        metadata |= source["metadata"]
    return query


def _find_pairs(
    collection: Collection, way: Way, queries: Iterable[Mapping[str, Any]], depth: int
) -> list[dict[str, str]]:
    """The best documents for each query's own words; the one that a query was written from is always among them."""
    index = index_for(collection)
    names = dict(Document.objects.filter(collection=collection, is_current=True).values_list("pk", "external_id"))
    found = []
    for query in queries:
        # The document that it was written of is relevant by its making, and BM25 may not find it.
        first = [query["metadata"][way.made_from]] if way is ASK else []
        excluded = query["metadata"].get(EXCLUDED, [])
        best = (names[key] for key, _score in index.search(query["text"], depth + len(excluded)) if key in names)
        ranked = [one for one in best if one not in excluded][:depth]
        found += [{"query_id": query["_id"], "doc_id": one} for one in dict.fromkeys([*first, *ranked])]
    return found


def count_synthetic(synthesis: Synthesis) -> dict[str, Any]:
    """Count the outcomes of the sources. `failed`: by reason; `pairs`: of the written queries."""
    rows = SyntheticBundle.objects.filter(synthesis=synthesis)
    written = rows.filter(bundle__isnull=False)
    ended = dict(rows.exclude(step="").order_by("reason").values_list("reason").annotate(rows=Count("pk")))
    there = ended.pop(PRESENT, 0)
    counted = {"written": written.count(), "there_before": there, "failed": ended}
    counted["waiting"] = synthesis.total - written.count() - there - sum(ended.values())
    ids = list(written.values_list("bundle__query_id", flat=True))
    # Of the queries that are still current: a new version of one is somebody else's.
    mine = Query.objects.filter(collection=synthesis.collection, external_id__in=ids, is_current=True)
    return counted | {"pairs": Pair.objects.filter(query__in=mine, is_candidate=True).count()}
