"""Web searches for a collection's queries: cost, start, results, end."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from annotation.models.web_search import WebSearch, WebSearchResult
from annotation.web_search import searching
from annotation.web_search.forms import WebSearchForm
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import validate_form
from api.routes.model_jobs import (
    JobAct,
    JobEstimateOut,
    LimitsIn,
    ModelJobOut,
    control_model_job,
    show_estimate,
    show_model_job,
)
from api.routes.pages import Cursor, Limit, Page, page_of
from corpus.numbered import numbered_or_404
from judges.campaigns.selectors import with_campaign_number

router = Router(tags=["web search"])
MANAGE = AccessToken.TokenScope.MANAGE


class WebSearchIn(LimitsIn):
    """Search service, and the queries that it searches for."""

    judge: str = Field(max_length=100, description="The search service, as the judges file names it.")
    limit: int | None = Field(20, ge=1, lt=1 << 31, description="Queries, drawn at random; null: all.")
    seed: int = Field(0, ge=0, lt=1 << 31)
    fetch: bool = Field(False, description="Fetch each page from its own site where robots.txt allows it.")


class WebSearchOut(ModelJobOut):
    """A web search."""

    judge: str
    documents: int = Field(description="That it added to the collection.")
    pairs: int


class FoundPageOut(Schema):
    """A page that was found for a query: the document that it became, or why it became none."""

    number: int
    query: str
    rank: int
    url: str
    title: str
    document: str | None
    problem: str
    answered_at: datetime | None


@router.get("/collections/{slug:name}/web-searches", auth=may("admin"), response=Page[WebSearchOut])
def list_web_searches(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the web searches, the oldest first."""
    return page_of(_searches(request), after, limit, _show_search)


@router.post("/collections/{slug:name}/web-searches/estimate", auth=may("admin"), response=JobEstimateOut)
def estimate_web_search(request: HttpRequest, name: str, body: WebSearchIn) -> Any:
    """Estimate what a web search costs; nothing starts."""
    return show_estimate(searching.estimate_cost(scope_of(request).collection, _options_of(body)))


@router.post("/collections/{slug:name}/web-searches", auth=may("admin", MANAGE), response={201: WebSearchOut})
@decorate_view(once)
def start_web_search(request: HttpRequest, name: str, body: WebSearchIn) -> Any:
    """Start a web search, or go on with the same one; a worker does the work."""
    scope, options = scope_of(request), _options_of(body)
    with transaction.atomic():
        made = searching.start_or_join(collection=scope.collection, options=options, by=scope.user.username)
        record(scope, "import.web", number=made.number)
    # Read again: a search that was joined has counts, and a new one times that the database set.
    return Status(201, _show_search(_find_search(request, made.number)))


def _options_of(body: WebSearchIn) -> dict[str, Any]:
    """Return the checked options, as the page's form gives them. Raises ValidationError, which names wrong fields."""
    return validate_form(WebSearchForm(body.dict()))


@router.get("/collections/{slug:name}/web-searches/{number}", auth=may("admin"), response=WebSearchOut)
def read_web_search(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far a web search is."""
    return _show_search(_find_search(request, number))


@router.get(
    "/collections/{slug:name}/web-searches/{number}/results",
    auth=may("admin"),
    response=Page[FoundPageOut],
)
def list_found_pages(request: HttpRequest, name: str, number: int, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the pages that a web search found."""
    rows = WebSearchResult.objects.filter(searched__search=_find_search(request, number))
    return page_of(rows.select_related("searched__query", "document"), after, limit, _show_page)


@router.post(
    "/collections/{slug:name}/web-searches/{number}/{act}",
    auth=may("admin", MANAGE),
    response=WebSearchOut,
)
@decorate_view(once)
def control_web_search(request: HttpRequest, name: str, number: int, act: JobAct, body: LimitsIn | None = None) -> Any:
    """Cancel a web search, or do the rest of one that was cancelled or failed."""
    found = _find_search(request, number)
    control_model_job(
        request,
        found,
        act,
        body,
        acts={"cancel": searching.cancel_search, "go-on": searching.go_on},
        set_limits=searching.set_limits,
        audit="import.web-control",
        number=found.number,
    )
    return _show_search(found)


def _searches(request: HttpRequest) -> Any:
    rows = WebSearch.objects.select_related("collection").filter(collection=scope_of(request).collection)
    return with_campaign_number(rows)


def _find_search(request: HttpRequest, number: int) -> WebSearch:
    rows, collection = _searches(request), scope_of(request).collection
    found: WebSearch = numbered_or_404(rows, collection, number, _("Web search not found."))
    return found


def _show_search(row: WebSearch) -> dict[str, Any]:
    counts = {name: row.imported.get(name, 0) for name in ("documents", "pairs")}
    return {**show_model_job(row), "judge": row.options["judge"], **counts}


def _show_page(row: WebSearchResult) -> dict[str, Any]:
    document = row.document.external_id if row.document else None
    said = {name: getattr(row, name) for name in ("rank", "url", "title", "problem")}
    searched = row.searched
    found = {"query": searched.query.external_id, "answered_at": searched.answered_at}
    return {"number": row.pk, **found, **said, "document": document}
