"""A web search for each query, through the judging engine: begun, gone on with, cancelled, and the work of its job.

Each answer is kept before it is read (RetrievalCall): the same search is never paid for twice, also after a kill.
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

from annotation.data.web_search.documents import PageReader, WebDocument, clean_line, import_documents
from annotation.data.web_search.options import WebSearchOptions
from annotation.models.web_search import SearchedQuery, WebSearch, WebSearchResult
from corpus.errors import BadInput
from corpus.models import Collection, Document, Query
from corpus.url_fetch.problems import NoPage, read_problem
from jobs import leases
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate, of_calls
from judges.campaigns.selectors import number_of
from judges.model_jobs.jobs import BatchOutcome, JobPlan, ModelJobKind, Options, ask_in_batches, cost_of, in_batches
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.searching import plain_prompt
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.answers import FoundPage, pages_of
from judges.retrieval.model_requests import RetrievalRequest, Wanted

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
        """The judge that searches, and the queries: all, or `limit` of them drawn by `seed`."""
        judge = model_requests.judge_for(ROLE, options["judge"])
        limit, seed, fetch = options.get("limit"), options.get("seed", 0), options.get("fetch", False)
        queries = _choose_queries(collection, limit, seed)
        return JobPlan(
            {"judge": judge.name, "limit": limit, "seed": seed, "fetch": fetch},
            [judge],
            # By the judge's version: another model, or other settings, make it another search.
            made_of=[judge.id, fetch, [one.pk for one in queries]],
            total=len(queries),
            columns={"imported": {"documents": 0, "pairs": 0}},
            parts=queries,
        )

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        prompts = [plain_prompt(ROLE, [one.text]) for one in plan.parts[:50]]
        return of_calls(plan.judges[0], plan.total, prompts, {}, 0)

    def begin(self, job: WebSearch, plan: JobPlan) -> None:
        rows = [SearchedQuery(search=job, place=place, query=one) for place, one in enumerate(plan.parts)]
        SearchedQuery.objects.bulk_create(rows)

    def judges_of(self, job: WebSearch) -> list[Judge]:
        return [model_requests.judge_for(ROLE, job.options["judge"])]

    def count_done(self, job: WebSearch) -> tuple[int, int]:
        return job.total - pending_queries(job).count(), job.total

    def work(self, job: WebSearch, lease: Lease) -> None:
        campaign = self.campaign_of(job)
        (judge,) = model_requests.judges_in(campaign)  # in its version of when the campaign was opened
        reader = PageReader(fetch=job.options["fetch"])

        def search(keys: Sequence[int]) -> BatchOutcome:
            rows = list(pending_queries(job).filter(pk__in=keys).select_related("query"))
            lease.progress(*self.count_done(job), SEARCHING)
            texts = [(row.query_id, row.query.text) for row in rows]
            wanted = [
                Wanted(key, text, (RetrievalRequest(ROLE, 0, plain_prompt(ROLE, [text]), documents=(text,)),))
                for key, text in texts
            ]
            found = model_requests.ask_model(campaign, judge, wanted, stopped=lease.should_stop)
            told = zip(rows, found.answers, strict=True)
            answered = {row: pages_of(turns[0]) for row, turns in told if turns is not None}
            outcomes = _read_pages(job, reader, _answer_times(campaign, answered), answered, lease)
            if outcomes is None:  # this worker ends, and its answers are kept
                return BatchOutcome(len(rows), 0, stopped=True)
            _store_outcomes(job, judge, outcomes)
            lease.progress(*self.count_done(job), READING)
            return BatchOutcome(len(rows), len(answered), found.error, found.spent, found.stopped)

        # Read once: a query without an answer stays pending, and would be asked again in each turn of the loop.
        keys = list(pending_queries(job).values_list("pk", flat=True))
        ask_in_batches(job, lease.should_stop, in_batches(keys, BATCH), search, job.total)


WEB_SEARCHES = WebSearches()


def _choose_queries(collection: Collection, limit: int | None, seed: int) -> list[Query]:
    rows = Query.objects.filter(collection=collection, is_current=True)
    # In one order on every machine, so that the same seed draws the same queries.
    queries = list(rows.exclude(text="").order_by("external_id"))
    if not queries:
        raise BadInput(_("%(name)s has no queries to search for: import some") % {"name": collection.name})
    if limit is None:
        return queries
    drawn = Random(seed).sample(queries, min(limit, len(queries)))
    return sorted(drawn, key=lambda query: query.external_id)


def pending_queries(search: WebSearch) -> Any:
    """Queries whose pages are not read yet, in order."""
    return SearchedQuery.objects.filter(search=search, answered_at=None).order_by("place")


def _answer_times(campaign: Campaign, answered: Mapping[SearchedQuery, object]) -> dict[int, tuple[datetime, bool]]:
    """Return by query when the service answered, and whether an equal call of another campaign got it earlier."""
    rows = RetrievalCall.objects.filter(role=ROLE, outcome="labelled")
    own = rows.filter(campaign=campaign, query__in=[row.query_id for row in answered]).order_by("-id")
    mine = {query: (key, at) for query, key, at in own.values_list("query", "cache_key", "started_at") if query}
    # The call that was really sent, whoever sent it. Newest first, so that the dictionary keeps the oldest.
    first = rows.filter(cached=False, cache_key__in=[key for key, _at in mine.values()]).order_by("-id")
    sent = {key: (at, by) for key, at, by in first.values_list("cache_key", "started_at", "campaign")}
    found = {query: sent.get(key, (at, campaign.pk)) for query, (key, at) in mine.items()}
    return {query: (at, by != campaign.pk) for query, (at, by) in found.items()}


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Outcome of a query's search: each page with its document, or the stored problem."""

    searched: SearchedQuery
    answered_at: datetime
    cached: bool
    pages: Sequence[tuple[FoundPage, WebDocument | str]]

    @property
    def documents(self) -> list[WebDocument]:
        """The pages that became documents."""
        return [one for _page, one in self.pages if isinstance(one, WebDocument)]


def _read_pages(
    search: WebSearch,
    reader: PageReader,
    answer_times: Mapping[int, tuple[datetime, bool]],
    answered: Mapping[SearchedQuery, Sequence[FoundPage]],
    lease: Lease,
) -> list[SearchOutcome] | None:
    """Make documents of the pages; None as soon as the work is to stop."""
    outcomes: list[SearchOutcome] = []
    before, _total = WEB_SEARCHES.count_done(search)
    for row, pages in answered.items():
        at, cached = answer_times[row.query_id]
        read: list[tuple[FoundPage, WebDocument | str]] = []
        for page in pages:
            # Asked before each page, since a slow one may take the whole time that a page has.
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
    """Import the documents and pairs, and keep what came of each result. Raises LeaseLost, and then nothing is kept."""
    # The row stays locked until the commit: a worker that took the search over meanwhile stores nothing beside this.
    leases.lock_held(search)
    found = {one.searched.query.external_id: one.documents for one in outcomes}
    # In the same transaction: a kill must not leave documents behind whose results are not kept.
    new = import_documents(search.collection, judge, found)
    ids = {document.id for documents in found.values() for document in documents}
    rows = Document.objects.filter(collection=search.collection, is_current=True, external_id__in=ids)
    keys = dict(rows.values_list("external_id", "pk"))
    results = []
    for one in outcomes:
        one.searched.answered_at, one.searched.cached = one.answered_at, one.cached
        for rank, (page, read) in enumerate(one.pages, 1):
            result = WebSearchResult(searched=one.searched, rank=rank, title=clean_line(page.title))
            if isinstance(read, WebDocument):
                result.url, result.document_id = clean_line(read.url), keys[read.id]
            else:
                result.url, result.problem = clean_line(page.url), read
            results.append(result)
    SearchedQuery.objects.bulk_update([one.searched for one in outcomes], ["answered_at", "cached"])
    WebSearchResult.objects.bulk_create(results)
    search.imported = {name: search.imported.get(name, 0) + count for name, count in new.items()}
    search.save(update_fields=["imported"])


def describe_search(search: WebSearch) -> dict[str, Any]:
    """Describe a search's results so far and their cost. `left_out`: results without a document."""
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
