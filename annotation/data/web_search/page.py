"""Contexts and tables of the pages of web searches: the list, and one search with its results."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Prefetch, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from annotation.data.web_search.searching import describe_search
from annotation.models.web_search import SearchedQuery, WebSearch, WebSearchResult
from charts.downloads import Cell, DownloadTable
from corpus.models import Pair
from corpus.url_fetch.problems import describe_problem, read_problem
from judges.panels.offline_panel import OFFLINE_SEARCH

ROWS = 10  # Queries on a page, each with its results.
# Why a result became no document, by code of corpus.url_fetch.problems, without the advice that is given there.
REASONS = {
    "address-odd": gettext_lazy("the address is not valid"),
    "address-none": gettext_lazy("the address is not valid"),
    "scheme": gettext_lazy("the address is neither http nor https"),
    "password": gettext_lazy("the address contains a user name or password"),
    "port": gettext_lazy("the address names an unusual port"),
    "name": gettext_lazy("the site was not found"),
    "not-public": gettext_lazy("the site is not on the public network"),
    "nowhere": gettext_lazy("the page redirects to no address"),
    "redirects": gettext_lazy("the page redirects too often"),
    "slow": gettext_lazy("the page did not load in time"),
    "unread": gettext_lazy("the site did not respond"),
    "tls": gettext_lazy("the site has no valid certificate"),
    "media": gettext_lazy("the page is not a text page"),
    "packed": gettext_lazy("the page is compressed in an unsupported way"),
    "cut-off": gettext_lazy("the connection was interrupted"),
    "large": gettext_lazy("the page is too large"),
    "robots": gettext_lazy("robots.txt does not allow fetching it"),
    "no-text": gettext_lazy("the page has no text"),
}


@dataclass(frozen=True, slots=True)
class FoundResult:
    """A result with its pair where it became a document, else the reason why it did not."""

    result: WebSearchResult
    pair: int | None
    reason: str

    @property
    def is_link(self) -> bool:
        """Return whether the result's address opens: those of the offline search do not exist."""
        return bool(self.result.document_id) and not self.result.url.startswith("https://offline-web-search.example/")


@dataclass(frozen=True, slots=True)
class WebSearchPage:
    """A web search with its summary, and a page of its queries with their results."""

    search: WebSearch
    summary: dict[str, Any]
    page: Page[SearchedQuery]
    rows: Sequence[tuple[SearchedQuery, Sequence[FoundResult]]]
    reasons: Sequence[tuple[str, int]]

    @property
    def is_offline(self) -> bool:
        """Return whether only the bundled passages were searched."""
        return bool(self.search.options.get("judge") == OFFLINE_SEARCH)


def show_search(search: WebSearch, number: str | None) -> WebSearchPage:
    """Return a web search with the page `number` of its queries."""
    summary = describe_search(search)
    page = Paginator(_answered(search), ROWS).get_page(number)
    queries = list(page.object_list)
    documents = {result.document_id for searched in queries for result in searched.results.all()} - {None}
    pairs = Pair.objects.filter(query__in=[searched.query_id for searched in queries], document__in=documents)
    pair_of = {(query, document): pair for query, document, pair in pairs.values_list("query", "document", "pk")}
    rows = []
    for searched in queries:
        results = [
            FoundResult(result, pair_of.get((searched.query_id, result.document_id or 0)), _describe(result.problem))
            for result in searched.results.all()
        ]
        rows.append((searched, results))
    return WebSearchPage(search, summary, page, rows, count_reasons(summary["left_out"]))


def _answered(search: WebSearch) -> QuerySet[SearchedQuery]:
    rows = SearchedQuery.objects.filter(search=search).exclude(answered_at=None).order_by("place")
    # In the order of the search service, which a prefetch does not keep by itself.
    results = WebSearchResult.objects.select_related("document").order_by("rank")
    return rows.select_related("query").prefetch_related(Prefetch("results", results))


def _describe(problem: str) -> str:
    """Describe why a result became no document; "" where it did."""
    if not problem:
        return ""
    code, values = read_problem(problem)
    if code == "status" and values:
        return str(_("the server responded with status %(status)s") % values)
    return str(REASONS[code]) if code in REASONS else describe_problem(problem)


def name_reason(code: str) -> str:
    """Return a reason in words, without the details of one address."""
    if code == "status":
        return _("the server sent no page")
    return str(REASONS.get(code, _("the page could not be read")))


def searches_table(rows: Iterable[WebSearch]) -> DownloadTable:
    """Build the table of a collection's web searches."""
    header = (
        pgettext("column", "web search"), _("search service"), pgettext("column", "by"), _("state"),
        pgettext("column", "created"), pgettext("column", "queries"), _("results"), _("documents"),
    )  # fmt: skip
    counted: Iterable[Any] = rows  # annotated by the view
    lines = tuple(
        (str(search.number), str(search.options["judge"]), search.made_by, str(search.get_state_display()),
         search.created_at.isoformat(), search.total, search.results, search.documents)
        for search in counted
    )  # fmt: skip
    return DownloadTable("web-searches", _("Web searches"), header, lines, 5)


def reasons_table(search: WebSearch) -> DownloadTable:
    """Build the table of how many results were left out for each reason."""
    counted = count_reasons(describe_search(search)["left_out"])
    return DownloadTable("left-out", _("Results left out"), (_("reason"), _("results")), tuple(counted))


def count_reasons(left_out: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return reasons in words with their counts, the most frequent first."""
    counted = Counter[str]()
    for code, count in left_out.items():
        counted[name_reason(code)] += count
    return sorted(counted.items(), key=lambda row: (-row[1], row[0]))


def results_table(search: WebSearch) -> DownloadTable:
    """Build the table of all results; a query without results has one row."""
    header = (
        pgettext("column", "query id"), _("query"), _("rank"), _("title"), _("address"), _("document"),
        pgettext("column", "left out because"), pgettext("column", "from the cache"), pgettext("column", "answered"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for searched in _answered(search):
        query = (searched.query.external_id, " ".join(searched.query.text.split()))
        answer = (
            _("yes") if searched.cached else _("no"),
            searched.answered_at.isoformat() if searched.answered_at else "",
        )
        for result in searched.results.all():
            document = result.document.external_id if result.document else None
            reason = _describe(result.problem) or None
            rows.append((*query, result.rank, result.title, result.url, document, reason, *answer))
        if not searched.results.all():
            rows.append((*query, None, None, None, None, None, *answer))
    return DownloadTable("results", _("Results of the web search"), header, tuple(rows), len(header))
