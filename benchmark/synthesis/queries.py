"""Queries that a judge writes: keyword forms of training queries (Prism 4.1), and queries that documents answer.

Each is a query of its own, with documents of its own that BM25 finds for its own words, to be judged like all others.
It is marked synthetic, so that it never enters dev or qrels; a keyword form names its query (`rewritten_from`).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmark.synthesis.bundles import draw_seeds, query_id_of
from benchmark.synthesis.files import lines_of
from benchmark.synthesis.seeds import Seed, collection_seeds
from corpus.errors import BadInput
from corpus.importing.files import FileSource
from corpus.importing.records import json_lines
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection, Document, Query
from corpus.search.bm25 import index_for
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.conversations.base import AnswerFormat
from judges.conversations.formats import FORMATS, schema_of
from judges.conversations.requests import Conversation, Step, Subject, hold_conversations
from judges.costs.ledger import ledger_rows, sum_rows
from judges.costs.token_mixes import mixes_of
from judges.domain.verdicts import NoVerdict
from judges.models import Campaign
from judges.prompts import templates
from judges.prompts.queries import ask_prompt, keywords_prompt
from judges.records import Judge, Prompt
from judges.retrieval import model_requests

SAMPLED = 50  # Prompts that an estimate looks at.
MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class Way:
    """How queries are written. `made_from`: key of the metadata that names what a query was written from."""

    role: str
    template: str
    material: str  # What the prompt is made of.
    prompt: Callable[[str], Prompt]
    made_from: str
    likely: int  # Expected tokens of an answer.


KEYWORDS = Way("keywords", "query-keywords", "query", keywords_prompt, "rewritten_from", 40)
ASK = Way("ask", "query-ask", "document", ask_prompt, "asked_of", 40)


def choose_training_queries(collection: Collection, folder: Path, *, share: float, seed: int) -> list[Seed]:
    """A seeded share of the queries that a training set trains on. Raises BadInput.

    A query that also stands in another split of the folder is none of them; neither is one that a model wrote.
    """
    if not 0 < share <= 1:
        raise BadInput(f"share {share:g}: give a number above 0, up to 1")
    trained = _query_ids(folder / "train.jsonl")
    for split in ("dev", "test"):
        if (path := folder / f"{split}.jsonl").exists():
            trained -= _query_ids(path)
    known = [one for one in collection_seeds(collection) if one.id in trained]
    count = round(share * len(known))
    if not count:
        raise BadInput(f"{folder}: {len(known):,} training queries of {collection.name}: too few for this share")
    chosen = set(draw_seeds((one.id for one in known), seed, count))
    return [one for one in known if one.id in chosen]


def _query_ids(path: Path) -> set[str]:
    found = set()
    source = FileSource(path)
    for number, row in json_lines(source):
        if not isinstance(row.get("query_id"), str):
            raise source.bad(number, 'it has no "query_id": give a set in the format prism, rtriever or erank-sft')
        found.add(row["query_id"])
    return found


def choose_documents(collection: Collection, *, limit: int, seed: int) -> list[Seed]:
    """So many documents of the collection, drawn by `seed`; none that a model wrote. Raises BadInput."""
    if limit < 1:
        raise BadInput(f"limit {limit}: give a number from 1")
    current = Document.objects.filter(collection=collection, is_current=True).exclude(text="")
    current = current.exclude(metadata__contains={"synthetic": True})
    names = list(current.order_by("external_id").values_list("external_id", flat=True))
    if not names:
        raise BadInput(f"{collection.name} has no document to write a query from")
    drawn = current.filter(external_id__in=draw_seeds(names, seed, limit)).order_by("external_id")
    # Below 0: calls about documents are kept where those about queries are.
    return [Seed(one.external_id, f"{one.title}\n{one.text}".strip(), -one.pk) for one in drawn]


def estimate_queries(way: Way, judge: Judge, sources: Sequence[Seed]) -> Estimate:
    """What writing these queries asks and costs."""
    sample = [way.prompt(one.text) for one in sources[:SAMPLED]]
    mix = mixes_of([judge]).get(judge.id, NO_MIX)
    return of_calls(judge, len(sources), sample, schema_of(FORMATS[way.role]), way.likely, mix)


def write_queries(
    collection: Collection,
    way: Way,
    sources: Sequence[Seed],
    judge: Judge,
    *,
    pairs: int,
    budget: float | None,
    max_calls: int | None,
) -> dict[str, Any]:
    """Have the queries written that are not there yet, and import them; return the document for --json.

    The same sources, judge and prompt continue the same campaign, whose answers are never asked for again. What is
    whole is imported also where a limit ended the rest. Raises BadInput.
    """
    waiting = _unwritten(collection, way, sources)
    campaign = _open_or_join(collection, way, sources, judge, budget=budget, max_calls=max_calls)
    (asked,) = model_requests.judges_in(campaign)
    texts = {one.query: one.text for one in waiting}

    async def talk(conversation: Conversation) -> AnswerFormat | NoVerdict:
        text = texts[conversation.subject.query]
        step = Step(way.role, FORMATS[way.role], asked, way.prompt(text), material={way.material: text})
        return await conversation.ask(step)

    subjects = [Subject(one.query or 0, one.text) for one in waiting]
    found = hold_conversations(campaign, subjects, talk)
    written, failed = {}, Counter[str]()
    for source, said in zip(waiting, found.results, strict=True):
        if said is None or isinstance(said, NoVerdict):
            failed[said.outcome if said else "not asked"] += 1
        else:
            written[source.id] = _text_of(said)
    imported = _import_queries(collection, way, written, judge.name, pairs)
    spent = sum_rows("", ledger_rows(campaign))
    return {
        "collection": collection.name,
        "campaign": campaign.pk,
        "chosen": len(sources),
        "there_before": len(sources) - len(waiting),
        "written": len(written),
        "failed": dict(sorted(failed.items())),
        "imported": imported,
        "stopped": found.spent,
        "calls": spent.calls,
        "calls_cached": spent.cached,
        "cost": spent.paid.usd if spent.paid else 0.0,
    }


def _text_of(said: AnswerFormat) -> str:
    told = said.model_dump()
    return str(told["query"]) if "query" in told else " ".join(told["keywords"])


def _unwritten(collection: Collection, way: Way, sources: Sequence[Seed]) -> list[Seed]:
    """Those from which no current query was written yet: a query keeps the form that it has."""
    rows = Query.objects.filter(collection=collection, is_current=True, metadata__has_key=way.made_from)
    known = set(rows.values_list(f"metadata__{way.made_from}", flat=True))
    return [one for one in sources if one.id not in known]


def _open_or_join(collection: Collection, way: Way, sources: Sequence[Seed], judge: Judge, **limits: Any) -> Campaign:
    prompts = [templates.text(name) for name in (f"{way.template}-system", way.template)]
    made_of = [judge.id, prompts, [(one.id, one.query) for one in sources]]
    purpose = f"{way.template} {sha256(json.dumps(made_of).encode()).hexdigest()[:16]}"
    model_requests.check_limits(collection, [judge], limits["budget"], limits["max_calls"])
    rows = Campaign.objects.filter(collection=collection, policy=Campaign.Policy.RETRIEVAL, panel=purpose)
    if (known := rows.order_by("pk").first()) is None:
        return model_requests.open_campaign(collection, [judge], purpose, **limits)
    model_requests.set_limits(known, **limits)
    return Campaign.objects.select_related("collection").get(pk=known.pk)


def _import_queries(
    collection: Collection, way: Way, written: Mapping[str, str], writer: str, pairs: int
) -> dict[str, int]:
    """Queries with the documents that BM25 finds for their own words. No label comes with them."""
    if not written:
        return {"queries": 0, "pairs": 0}
    queries = [_describe_query(way, made_from, text, writer) for made_from, text in written.items()]
    with TemporaryDirectory() as folder:
        files = ImportFiles(
            queries=_write(Path(folder) / "queries.jsonl", queries),
            pairs=_write(Path(folder) / "pairs.jsonl", _find_pairs(collection, way, queries, pairs)),
        )
        found = import_collection(collection.name, files)
    return {name: found.new[name] for name in ("queries", "pairs")}


def _describe_query(way: Way, made_from: str, text: str, writer: str) -> dict[str, Any]:
    metadata = {"synthetic": True, "writer": writer, way.made_from: made_from}
    if way is KEYWORDS:
        metadata["seed_query"] = made_from
    return {"_id": query_id_of(f"{way.role} {made_from}", text), "text": text, "metadata": metadata}


def _find_pairs(
    collection: Collection, way: Way, queries: Iterable[Mapping[str, Any]], depth: int
) -> list[dict[str, str]]:
    """The best documents for each query's own words; the one that a query was written from is always among them."""
    index = index_for(collection)
    names = dict(Document.objects.filter(collection=collection, is_current=True).values_list("pk", "external_id"))
    found = []
    for query in queries:
        first = [query["metadata"][way.made_from]] if way is ASK else []
        ranked = [names[key] for key, _ in index.search(query["text"], depth) if key in names]
        found += [{"query_id": query["_id"], "doc_id": one} for one in dict.fromkeys([*first, *ranked])]
    return found


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text(lines_of(rows), encoding="utf-8")
    return path
