"""A web search for each query, through the judging engine, and its pages as documents to be judged.

Each answer is kept before it is read (RetrievalCall): the same search is never paid for twice, also after a kill. Pages
are strangers' texts: they become documents like imported ones, without markup, and nothing in them is followed.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from annotation.url_fetch import texts
from annotation.url_fetch.pages import check_url, fetch_page
from annotation.url_fetch.problems import NoPage
from annotation.url_fetch.robots import RobotRules
from corpus.aspects.documents import LONGEST
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection, Document, Query
from judges.campaigns.estimates import Estimate, of_calls
from judges.costs.ledger import ledger_rows, sum_rows
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.searching import plain_prompt
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.answers import FoundPage, pages_of
from judges.retrieval.model_requests import RetrievalRequest, Wanted

ROLE = "web"


@dataclass(frozen=True, slots=True)
class WebDocument:
    """A page as a document: its cleaned text, and where, when and as what bytes it came."""

    title: str
    text: str
    url: str
    fetched_at: datetime
    sha256: str
    published: str = ""

    @property
    def id(self) -> str:
        """The document's id: pages with the same title and text are one document."""
        return "web-" + sha256(f"{self.title}\n{self.text}".encode()).hexdigest()[:16]


def estimate_search(judge: Judge, queries: Sequence[Query]) -> Estimate:
    """Estimate a call for each query."""
    return of_calls(judge, len(queries), [plain_prompt(ROLE, [one.text]) for one in queries[:50]], {}, 0)


def search_web(
    collection: Collection,
    judge: Judge,
    queries: Sequence[Query],
    *,
    fetch: bool = False,
    budget: float | None = None,
    max_calls: int | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Search for each query and import the pages; return the document for --json. Raises BadInput.

    `fetch`: take each page from its site instead of the text that the service gives, where robots.txt allows it. The
    same queries and judge continue the same campaign.
    """
    campaign = _open_or_join(collection, judge, queries, budget=budget, max_calls=max_calls)
    (asked,) = model_requests.judges_in(campaign)
    found = model_requests.ask_model(campaign, asked, [_wanted(one) for one in queries])
    answered = {
        query.external_id: pages_of(turns[0])
        for query, turns in zip(queries, found.answers, strict=True)
        if turns is not None
    }
    reader, at = PageReader(fetch, tell), _answer_times(campaign)
    by_query = {query.external_id: query.pk for query in queries}
    documents = {
        name: [one for page in pages if (one := reader.read(page, at[by_query[name]])) is not None]
        for name, pages in answered.items()
    }
    imported = _import_documents(collection, judge, documents)
    spent = sum_rows("", ledger_rows(campaign))
    return {
        "collection": collection.name,
        "campaign": campaign.pk,
        "queries": len(queries),
        "answered": len(answered),
        "without_results": sum(not pages for pages in answered.values()),
        "results": sum(map(len, answered.values())),
        "left_out": dict(sorted(reader.left_out.items())),
        "imported": imported,
        "error": found.error,
        "stopped": found.spent,
        "calls": spent.calls,
        "calls_cached": spent.cached,
        "cost": spent.paid.usd if spent.paid else 0.0,
    }


def _wanted(query: Query) -> Wanted:
    request = RetrievalRequest(ROLE, 0, plain_prompt(ROLE, [query.text]), documents=(query.text,))
    return Wanted(query.pk, query.text, (request,))


class PageReader:
    """Makes documents of results. `left_out`: how many had none, by the code of why (annotation.url_fetch.problems)."""

    def __init__(self, fetch: bool, tell: Callable[[str], None]) -> None:
        self.fetch, self.tell = fetch, tell
        self.rules, self.left_out = RobotRules(), Counter[str]()

    def read(self, page: FoundPage, answered_at: datetime) -> WebDocument | None:
        """Make a document of a result; None where its address or its text will not do."""
        try:
            check_url(page.url)
            return self._fetched(page) if self.fetch else self._given(page, answered_at)
        except NoPage as problem:
            self.left_out[json.loads(problem.stored)[0]] += 1
            self.tell(f"{page.url[:200]}: {problem}")
            return None

    def _given(self, page: FoundPage, answered_at: datetime) -> WebDocument:
        text = texts.clean_text(page.text)[:LONGEST]
        if not text:
            raise NoPage("no-text")
        digest = sha256(page.text.encode("utf-8", "replace")).hexdigest()
        return WebDocument(_title(page.title), text, page.url, answered_at, digest, page.published)

    def _fetched(self, page: FoundPage) -> WebDocument:
        self.rules.check(page.url)
        now = datetime.now().astimezone()
        got = fetch_page(page.url)
        title, text = texts.extract_text(got)
        return WebDocument(title or _title(page.title), text[:LONGEST], got.url, now, got.sha256, page.published)


def _title(title: str) -> str:
    return " ".join(texts.clean_text(title).split())[:500]


def _answer_times(campaign: Campaign) -> dict[int, datetime]:
    """When the service gave each query's answer, which an equal call of another campaign may have got earlier."""
    rows = RetrievalCall.objects.filter(campaign=campaign, role=ROLE, outcome="labelled")
    own = {query: (key, at) for query, key, at in rows.values_list("query", "cache_key", "started_at") if query}
    sent = RetrievalCall.objects.filter(cache_key__in=[key for key, _at in own.values()], outcome="labelled")
    first = dict(sent.filter(cached=False).order_by("-id").values_list("cache_key", "started_at"))
    return {query: first.get(key, at) for query, (key, at) in own.items()}


def _import_documents(
    collection: Collection, judge: Judge, found: Mapping[str, Sequence[WebDocument]]
) -> dict[str, int]:
    """Add the documents that the collection lacks, and the pairs. No label comes with them."""
    documents = {one.id: one for several in found.values() for one in several}
    if not documents:
        return {"documents": 0, "pairs": 0}
    rows = Document.objects.filter(collection=collection, is_current=True, external_id__in=documents)
    known = set(rows.values_list("external_id", flat=True))
    pairs = [{"query_id": query, "doc_id": one.id} for query, several in found.items() for one in several]
    pairs = list({(pair["query_id"], pair["doc_id"]): pair for pair in pairs}.values())
    fresh = [_corpus_line(one, judge) for name, one in documents.items() if name not in known]
    with TemporaryDirectory() as folder:
        corpus = _write(Path(folder) / "corpus.jsonl", fresh) if fresh else None
        files = ImportFiles(corpus=corpus, pairs=_write(Path(folder) / "pairs.jsonl", pairs))
        new = import_collection(collection.name, files)["new"]
    return {name: new[name] for name in ("documents", "pairs")}


def _corpus_line(one: WebDocument, judge: Judge) -> dict[str, Any]:
    source = {"kind": "web", "url": one.url, "fetched_at": one.fetched_at.isoformat(timespec="seconds")}
    source |= {"sha256": one.sha256, "search": judge.name, "service": judge.provider}
    source |= {"published": one.published} if one.published else {}
    return {"_id": one.id, "title": one.title, "text": one.text, "metadata": {"source": source}}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def _open_or_join(collection: Collection, judge: Judge, queries: Sequence[Query], **limits: Any) -> Campaign:
    made_of = json.dumps([judge.id, [one.pk for one in queries]])
    purpose = f"web search {sha256(made_of.encode()).hexdigest()[:16]}"
    model_requests.check_limits(collection, [judge], limits["budget"], limits["max_calls"])
    rows = Campaign.objects.filter(collection=collection, policy=Campaign.Policy.RETRIEVAL, panel=purpose)
    if (known := rows.order_by("pk").first()) is None:
        return model_requests.open_campaign(collection, [judge], purpose, **limits)
    model_requests.set_limits(known, **limits)
    return Campaign.objects.select_related("collection").get(pk=known.pk)
