"""Web searches for the queries of a collection: a model job that asks a search service through the judging engine.

Each answer is stored before it is used (RetrievalCall), so that no search is paid for twice, even after a kill.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from annotation.data.web_search.documents import PageReader, WebDocument, clean_line
from annotation.data.web_search.options import WebSearchOptions
from annotation.models.web_search import SearchedQuery, WebSearch, WebSearchResult
from corpus.errors import BadInput
from corpus.importing.made_rows import import_rows
from corpus.models import Collection, Document, Query
from corpus.url_fetch.problems import NoPage, read_problem
from jobs import leases
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate, of_calls
from judges.campaigns.selectors import number_of
from judges.model_jobs.jobs import BatchOutcome, JobPlan, ModelJobKind, Options, ask_in_batches, cost_of, in_batches
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.answers.retrieval import FoundPage, pages_of
from judges.prompts.searching import plain_prompt
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.model_requests import QueryRequests, RetrievalRequest

ROLE = "web"
BATCH = 50  # Queries whose pages are imported together; every answer is stored as it comes.
SEARCHING, READING = gettext_noop("searching"), gettext_noop("reading pages")


class WebSearches(ModelJobKind[WebSearch]):
    """Web searches: a call for each query, whose pages become documents."""

    model, task, purpose = WebSearch, "annotation.search_web", "web search"
    name, home = "web_search", "web_searches"
    title, question = gettext_lazy("Web search"), gettext_lazy("Search the web for these queries?")
    note = gettext_lazy("The texts of these queries are sent to the search service.")
    missing = gettext_lazy("Web search not found.")
    record, roles = WebSearchOptions, {"judge": ROLE}
    started, controlled, detail = "import.web", "import.web-control", "number"

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Choose the search service and the queries: all, or `limit` of them drawn by `seed`."""
        judge = model_requests.judge_for(ROLE, options["judge"])
        limit, seed, fetch = options.get("limit"), options.get("seed", 0), options.get("fetch", False)
        queries = _choose_queries(collection, limit, seed)
        return JobPlan(
            {"judge": judge.name, "limit": limit, "seed": seed, "fetch": fetch},
            [judge],
            # The judge's version: with another model or other settings it is another search.
            made_of=[judge.id, fetch, [query.pk for query in queries]],
            total=len(queries),
            columns={"imported": {"documents": 0, "pairs": 0}},
            parts=queries,
        )

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        prompts = [plain_prompt(ROLE, [query.text]) for query in plan.parts[:50]]
        return of_calls(plan.judges[0], plan.total, prompts, {}, 0)

    def begin(self, job: WebSearch, plan: JobPlan) -> None:
        rows = [SearchedQuery(search=job, place=position, query=query) for position, query in enumerate(plan.parts)]
        SearchedQuery.objects.bulk_create(rows)

    def judges_of(self, job: WebSearch) -> list[Judge]:
        return [model_requests.judge_for(ROLE, job.options["judge"])]

    def count_done(self, job: WebSearch) -> tuple[int, int]:
        return job.total - pending_queries(job).count(), job.total

    def work(self, job: WebSearch, lease: Lease) -> None:
        campaign = self.campaign_of(job)
        (judge,) = model_requests.judges_in(campaign)  # The version with which the campaign began.
        reader = PageReader(fetch=job.options["fetch"])

        def search(keys: Sequence[int]) -> BatchOutcome:
            rows = list(pending_queries(job).filter(pk__in=keys).select_related("query"))
            lease.progress(*self.count_done(job), SEARCHING)
            texts = [(row.query_id, row.query.text) for row in rows]
            requests = [
                QueryRequests(key, text, (RetrievalRequest(ROLE, 0, plain_prompt(ROLE, [text]), documents=(text,)),))
                for key, text in texts
            ]
            result = model_requests.ask_model(campaign, judge, requests, should_stop=lease.should_stop)
            turns_of = zip(rows, result.answers, strict=True)
            answered = {row: pages_of(turns[0]) for row, turns in turns_of if turns is not None}
            outcomes = _read_pages(job, reader, _answer_times(campaign, answered), answered, lease)
            if outcomes is None:  # The worker is stopping; its answers are stored.
                return BatchOutcome(len(rows), 0, stopped=True)
            _store_outcomes(job, judge, outcomes)
            lease.progress(*self.count_done(job), READING)
            return BatchOutcome(len(rows), len(answered), result.error, result.spent, result.stopped)

        # Read once: a query without an answer stays pending and would be asked again with each batch.
        keys = list(pending_queries(job).values_list("pk", flat=True))
        ask_in_batches(job, lease.should_stop, in_batches(keys, BATCH), search, job.total)


WEB_SEARCHES = WebSearches()


def _choose_queries(collection: Collection, limit: int | None, seed: int) -> list[Query]:
    rows = Query.objects.filter(collection=collection, is_current=True)
    # Sorted, so that the same seed draws the same queries on every machine.
    queries = list(rows.exclude(text="").order_by("external_id"))
    if not queries:
        raise BadInput(_("%(name)s has no queries to search for: import some") % {"name": collection.name})
    if limit is None:
        return queries
    sample = Random(seed).sample(queries, min(limit, len(queries)))
    return sorted(sample, key=lambda query: query.external_id)


def pending_queries(search: WebSearch) -> Any:
    """Return the queries whose pages are not read yet, in order."""
    return SearchedQuery.objects.filter(search=search, answered_at=None).order_by("place")


def _answer_times(campaign: Campaign, answered: Mapping[SearchedQuery, object]) -> dict[int, tuple[datetime, bool]]:
    """Return, by query, when the service answered, and whether an equal call of another campaign had the answer."""
    rows = RetrievalCall.objects.filter(role=ROLE, outcome="labelled")
    own_calls = rows.filter(campaign=campaign, query__in=[row.query_id for row in answered]).order_by("-id")
    own_answers = {
        query: (key, at) for query, key, at in own_calls.values_list("query", "cache_key", "started_at") if query
    }
    # The calls that were sent, by any campaign. Newest first, so that the dictionary keeps the oldest.
    first = rows.filter(cached=False, cache_key__in=[key for key, _at in own_answers.values()]).order_by("-id")
    first_answers = {key: (at, by) for key, at, by in first.values_list("cache_key", "started_at", "campaign")}
    calls = {query: first_answers.get(key, (at, campaign.pk)) for query, (key, at) in own_answers.items()}
    return {query: (at, by != campaign.pk) for query, (at, by) in calls.items()}


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Outcome of a query's search: each page with its document, or the stored problem."""

    searched: SearchedQuery
    answered_at: datetime
    cached: bool
    pages: Sequence[tuple[FoundPage, WebDocument | str]]

    @property
    def documents(self) -> list[WebDocument]:
        """Documents made of the pages."""
        return [document for _page, document in self.pages if isinstance(document, WebDocument)]


def _read_pages(
    search: WebSearch,
    reader: PageReader,
    answer_times: Mapping[int, tuple[datetime, bool]],
    answered: Mapping[SearchedQuery, Sequence[FoundPage]],
    lease: Lease,
) -> list[SearchOutcome] | None:
    """Make documents of the pages; None if the worker has to stop."""
    outcomes: list[SearchOutcome] = []
    before, _total = WEB_SEARCHES.count_done(search)
    for row, pages in answered.items():
        at, cached = answer_times[row.query_id]
        read: list[tuple[FoundPage, WebDocument | str]] = []
        for page in pages:
            # Checked before each page, since a slow one may take all the time that a page is given.
            if lease.should_stop():
                return None
            try:
                read.append((page, reader.read_page(page, at)))
            except NoPage as problem:
                read.append((page, problem.stored))
        outcomes.append(SearchOutcome(row, at, cached, read))
        lease.note(before + len(outcomes), search.total, READING)
    return outcomes


@transaction.atomic
def _store_outcomes(search: WebSearch, judge: Judge, outcomes: Sequence[SearchOutcome]) -> None:
    """Import documents and pairs, and store the outcome of each result. Raises LeaseLost; then nothing is stored."""
    # Locked until the commit, so that a worker that takes the search over stores nothing meanwhile.
    leases.lock_held(search)
    by_query = {outcome.searched.query.external_id: outcome.documents for outcome in outcomes}
    # Documents and pairs that the collection lacks are added in the same transaction, so that a kill leaves no
    # documents without their results.
    documents = {document.id: document for results in by_query.values() for document in results}
    if not documents:
        imported = {"documents": 0, "pairs": 0}
    else:
        # Ids are hashes of the text, so a page that was found before has the same id.
        rows = Document.objects.filter(collection=search.collection, is_current=True, external_id__in=documents)
        existing = set(rows.values_list("external_id", flat=True))
        pairs = [
            {"query_id": query, "doc_id": document.id} for query, results in by_query.items() for document in results
        ]
        pairs = list({(pair["query_id"], pair["doc_id"]): pair for pair in pairs}.values())
        corpus: list[dict[str, Any]] = []
        for document in documents.values():
            # An existing document keeps its metadata, which name the search that found it first.
            if document.id in existing:
                continue
            source = {
                "kind": "web",
                "url": document.url,
                "fetched_at": document.fetched_at.isoformat(timespec="seconds"),
            }
            source |= {"sha256": document.sha256, "search": judge.name, "service": judge.provider}
            source |= {"published": document.published} if document.published else {}
            row = {"_id": document.id, "title": document.title, "text": document.text, "metadata": {"source": source}}
            corpus.append(row)
        counts = import_rows(search.collection, corpus=corpus, pairs=pairs)
        imported = {name: counts[name] for name in ("documents", "pairs")}
    ids = {document.id for documents in by_query.values() for document in documents}
    rows = Document.objects.filter(collection=search.collection, is_current=True, external_id__in=ids)
    keys = dict(rows.values_list("external_id", "pk"))
    results = []
    for outcome in outcomes:
        outcome.searched.answered_at, outcome.searched.cached = outcome.answered_at, outcome.cached
        for rank, (page, read) in enumerate(outcome.pages, 1):
            result = WebSearchResult(searched=outcome.searched, rank=rank, title=clean_line(page.title))
            if isinstance(read, WebDocument):
                result.url, result.document_id = clean_line(read.url), keys[read.id]
            else:
                result.url, result.problem = clean_line(page.url), read
            results.append(result)
    SearchedQuery.objects.bulk_update([outcome.searched for outcome in outcomes], ["answered_at", "cached"])
    WebSearchResult.objects.bulk_create(results)
    search.imported = {name: search.imported.get(name, 0) + count for name, count in imported.items()}
    search.save(update_fields=["imported"])


def describe_search(search: WebSearch) -> dict[str, Any]:
    """Return a search's counts so far and its cost. `left_out`: results without a document, by reason."""
    results = WebSearchResult.objects.filter(searched__search=search)
    problems = results.exclude(problem="").values_list("problem", flat=True)
    left_out = Counter(read_problem(problem)[0] for problem in problems)
    queries = SearchedQuery.objects.filter(search=search)
    return {
        "collection": search.collection.name,
        "search": search.number,
        "state": search.state,
        "campaign": number_of(search.campaign),
        "queries": search.total,
        "answered": search.total - pending_queries(search).count(),
        "without_results": queries.exclude(answered_at=None).filter(results=None).count(),
        "results": results.count(),
        "left_out": dict(sorted(left_out.items())),
        "imported": {"documents": 0, "pairs": 0} | search.imported,
        "error": search.error,
        **cost_of(search),
    }
