"""A web search for each query, through the judging engine: begun, gone on with, cancelled, and the work of its job.

Each answer is kept before it is read (RetrievalCall): the same search is never paid for twice, also after a kill.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models.web_search import SearchedQuery, WebSearch, WebSearchResult
from annotation.url_fetch.problems import NoPage, read_problem
from annotation.web_search.documents import PageReader, WebDocument, clean_line, import_documents
from corpus.errors import BadInput, Incomplete, QuorumError
from corpus.models import Collection, Document, Query
from jobs import leases
from jobs.leases import Lease
from jobs.models import JobState
from jobs.notifications import notify
from judges.campaigns.estimates import Estimate, of_calls
from judges.campaigns.selectors import number_of
from judges.costs.ledger import ledger_rows, sum_rows
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.searching import plain_prompt
from judges.records import Judge
from judges.retrieval import job_campaigns, model_requests
from judges.retrieval.answers import FoundPage, pages_of
from judges.retrieval.model_requests import RetrievalRequest, Wanted

ROLE = "web"
SEARCH_WEB = "annotation.search_web"
BATCH = 50  # Queries whose pages are imported together; every answer is stored as it comes.
SEARCHING, READING = gettext_noop("searching"), gettext_noop("reading pages")


def check_options(collection: Collection, options: Mapping[str, Any]) -> tuple[Judge, list[Query]]:
    """The judge that searches, and the queries: all, or `limit` of them drawn by `seed`. Raises BadInput."""
    judge = model_requests.judge_for(ROLE, str(options.get("judge") or ""))
    model_requests.check_limits(collection, [judge], **job_campaigns.limits_of(options))
    rows = Query.objects.filter(collection=collection, is_current=True)
    # In one order on every machine, so that the same seed draws the same queries.
    queries = list(rows.exclude(text="").order_by("external_id"))
    if not queries:
        raise BadInput(_("%(name)s has no queries to search for: import some") % {"name": collection.name})
    limit = options.get("limit")
    if limit is None:
        return judge, queries
    if int(limit) < 1:
        raise BadInput(_("limit %(limit)s: give a number from 1") % {"limit": limit})
    drawn = Random(int(options.get("seed") or 0)).sample(queries, min(int(limit), len(queries)))
    return judge, sorted(drawn, key=lambda query: query.external_id)


def estimate_cost(collection: Collection, options: Mapping[str, Any]) -> Estimate:
    """Estimate the cost of a call for each query. Raises BadInput as `start_or_join` does."""
    judge, queries = check_options(collection, options)
    return of_calls(judge, len(queries), [plain_prompt(ROLE, [one.text]) for one in queries[:50]], {}, 0)


@transaction.atomic
def start_or_join(*, collection: Collection, options: Mapping[str, Any], by: str = "") -> WebSearch:
    """Go on with the search by this judge for these queries where there is one, else create it. Raises BadInput.

    What it may spend is no part of what it is: other limits replace the old ones.
    """
    judge, queries = check_options(collection, options)
    limits = job_campaigns.limits_of(options)
    known = {"judge": judge.name, "limit": options.get("limit"), "seed": int(options.get("seed") or 0)}
    known |= {"fetch": bool(options.get("fetch"))}
    # By the judge's version: another model, or other settings, make it another search.
    made_of = json.dumps([judge.id, known["fetch"], [one.pk for one in queries]])
    search, is_new = WebSearch.objects.get_or_create(
        collection=collection,
        key=sha256(made_of.encode()).hexdigest(),
        defaults={
            "options": job_campaigns.replace_limits(known, limits),
            "total": len(queries),
            "made_by": by,
            "imported": {"documents": 0, "pairs": 0},
        },
    )
    if is_new:
        rows = [SearchedQuery(search=search, place=place, query=one) for place, one in enumerate(queries)]
        SearchedQuery.objects.bulk_create(rows)
        transaction.on_commit(partial(notify, SEARCH_WEB))
    else:
        # A finished search has nothing left to spend, so new limits change nothing.
        if search.state != JobState.READY and limits != job_campaigns.limits_of(search.options):
            set_limits(search, **limits)
        go_on(search)
    return WebSearch.objects.select_related("collection").get(pk=search.pk)


def set_limits(search: WebSearch, *, budget: float | None, max_calls: int | None) -> None:
    """Set what it may spend in all; None: no limit. `go_on` then goes on. Raises BadInput."""
    job_campaigns.set_job_limits(search, partial(_find_judges, search), budget=budget, max_calls=max_calls)


def _find_judges(search: WebSearch) -> list[Judge]:
    return [model_requests.judge_for(ROLE, search.options["judge"])]


def cancel_search(search: WebSearch) -> bool:
    """Stop it; the documents that it has stay. False when it is over already."""
    return leases.cancel(search, **count_progress(search))


def go_on(search: WebSearch) -> bool:
    """Search for the rest of a cancelled or failed one. False in any other state."""
    went = leases.resume(search)
    if went:
        transaction.on_commit(partial(notify, SEARCH_WEB))
    return went


def pending_queries(search: WebSearch) -> Any:
    """Queries whose pages are not read yet, in order."""
    return SearchedQuery.objects.filter(search=search, answered_at=None).order_by("place")


def count_progress(search: WebSearch) -> dict[str, int]:
    """Count the queries whose pages are read, and all queries."""
    return {"done": search.total - pending_queries(search).count(), "total": search.total}


def perform_search(search: WebSearch, stopping: Any) -> None:
    """Do a claimed search, until it is over or somebody else's, or waits again because this worker ends."""
    leases.perform(
        search,
        partial(_search_all, search),
        stopping=stopping,
        expected=QuorumError,
        last=lambda: count_progress(search),
    )


def _search_all(search: WebSearch, lease: Lease) -> None:
    """Search for all queries that wait, and import their pages batch by batch.

    Raises Incomplete when the limits are reached, and in the end when some queries got no answer: what there is stays.
    """
    campaign = job_campaigns.campaign_of(search, partial(_find_judges, search), f"web search {search.pk}")
    (judge,) = model_requests.judges_in(campaign)  # in its version of when the campaign was opened
    reader, failed, error = PageReader(fetch=search.options["fetch"]), 0, ""
    # Read once: a query without an answer stays pending, and would be asked again in each turn of the loop.
    keys = list(pending_queries(search).values_list("pk", flat=True))
    for at in range(0, len(keys), BATCH):
        if lease.should_stop():
            return
        rows = list(pending_queries(search).filter(pk__in=keys[at : at + BATCH]).select_related("query"))
        _tell(search, lease, SEARCHING)
        wanted = [_request_of(row.query) for row in rows]
        found = model_requests.ask_model(campaign, judge, wanted, stopped=lease.should_stop)
        told = zip(rows, found.answers, strict=True)
        answered = {row: pages_of(turns[0]) for row, turns in told if turns is not None}
        outcomes = _read_pages(search, reader, _answer_times(campaign, answered), answered, lease)
        if outcomes is None:  # this worker ends, and its answers are kept
            return
        _store_outcomes(search, judge, outcomes)
        _tell(search, lease, READING)
        if found.stopped:
            return
        if found.spent:
            raise job_campaigns.describe_stop(search, found.spent)
        failed, error = failed + len(rows) - len(answered), found.error or error
        # Not one answer in a whole batch: the service is away or refuses, and the rest would fail alike.
        if not answered:
            break
    if failed:
        raise Incomplete(
            _("%(failed)s of %(total)s queries got no response (%(error)s). Resume to retry them")
            % {"failed": f"{failed:,}", "total": f"{search.total:,}", "error": error}
        )


def _tell(search: WebSearch, lease: Lease, phase: str) -> None:
    lease.progress(**count_progress(search), phase=phase)


def _request_of(query: Query) -> Wanted:
    request = RetrievalRequest(ROLE, 0, plain_prompt(ROLE, [query.text]), documents=(query.text,))
    return Wanted(query.pk, query.text, (request,))


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
    """Outcome of a query's search: each page with its document, or with the stored problem in its place."""

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
    before = count_progress(search)["done"]
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
    spent = sum_rows("", ledger_rows(Campaign(pk=search.campaign))) if search.campaign else None
    results = WebSearchResult.objects.filter(searched__search=search)
    left_out = Counter(read_problem(problem)[0] for problem in _problems_of(search))
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
        "calls": spent.calls if spent else 0,
        "calls_cached": spent.cached if spent else 0,
        "cost": spent.paid.usd if spent and spent.paid else 0.0,
    }


def _problems_of(search: WebSearch) -> Any:
    rows = WebSearchResult.objects.filter(searched__search=search).exclude(problem="")
    return rows.values_list("problem", flat=True)
