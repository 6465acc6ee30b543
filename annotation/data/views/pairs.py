"""Pages of pairs: the table with its saved views, one pair in detail, and the grades of two assessors."""

from urllib.parse import urlsplit

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.agreement.views import explain_failure, quality_address
from annotation.data import pairs as listing
from annotation.data import saved_views
from annotation.data import two_assessors as crossing
from annotation.data.pair_filters import ALWAYS, COLUMNS, ORIGINS, STATES, PairFilters, choose_columns
from annotation.data.pair_order import PageKey
from annotation.models import User
from annotation.models.pair_table import BulkAct, SavedView
from annotation.work.judging.document import allow_images
from annotation.work.queue import skipped
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.models import Item
from corpus.search import full_text
from jobs.background import is_unfinished


@action("results")
@require_GET
def pairs(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show a page of the table; the URL has its filters, order and key."""
    return render_pairs(request, scope, request.GET)


def render_pairs(request: HttpRequest, scope: Scope, query: QueryDict, *, problem: str = "") -> HttpResponse:
    """Render the table of a query string. `problem`: why a form on the page was refused."""
    filters = listing.read_filters(scope, query)
    campaign = listing.get_campaign(scope.collection, filters.campaign)
    # The page begins after or before a pair, by its id and sort value.
    key = PageKey()
    for name in ("before", "after"):
        text = query.get(name, "")
        if text.isdecimal() and len(text) <= 18:
            key = PageKey(int(text), query.get("key", "")[:300], backwards=name == "before")
    columns = listing.columns_of(scope)
    try:
        page = listing.load_page(scope.collection, filters, campaign=campaign, key=key, columns=columns)
    except BadInput as error:
        raise Http404(str(error)) from error
    context = {
        "scope": scope,
        "filters": filters,
        "page": page,
        "campaign": campaign,
        "problem": problem,
        "saved_views": SavedView.objects.filter(user=scope.user, collection=scope.collection).order_by("name"),
        "is_indexing": bool(filters.q) and is_unfinished(full_text.INDEX, scope.collection.pk),
        "states": STATES,
        "reasons": Item.Reason.choices,
        "grades": range(scope.collection.grades + 1),
        "origins": ORIGINS,
        "bulk_kinds": BulkAct.Kind.choices,
        "columns": columns,
        "headings": filters.headings(columns),
        "is_fragment": bool(request.headers.get("HX-Request")),
    }
    choices = {}
    if filters.stratum or not context["is_fragment"]:
        choices = listing.list_choices(scope.collection, campaign)
    context["chips"] = filters.chips(dict(choices.get("routes", ())))
    if context["is_fragment"]:
        return render(request, "data/_pair_list.html", context)
    context |= {
        "choices": choices,
        "all_columns": [(key, title) for key, (title, _is_number) in COLUMNS.items() if key not in ALWAYS],
    }
    response = render(request, "data/pairs.html", context, status=422 if problem else 200)
    # Documents are shown in the panel beside the table.
    return allow_images(response, scope.collection.document_format)


@action("admin")
@require_POST
def set_columns(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show a column of the table to the person, or hide it, in every collection; HTMX gets the table."""
    columns = choose_columns({request.POST.get("column", "")} ^ set(listing.columns_of(scope)))
    scope.user.display = {**scope.user.display, "pair_columns": columns}
    User.objects.filter(pk=scope.user.pk).update(display=scope.user.display)
    if request.headers.get("HX-Request"):
        return render_pairs(request, scope, QueryDict(urlsplit(request.headers.get("HX-Current-URL", "")).query))
    return _redirect_to_table(scope, request.POST.get("query", "")[:5000])


@action("admin")
@require_POST
def hand_over_skipped(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Send the pairs that all annotators skipped to adjudicators."""
    with transaction.atomic():
        count = skipped.hand_over(scope.collection)
        record(scope, "skipped.handed-over", pairs=count)
    words = ngettext(
        "%(count)s pair waits for an adjudicator now.", "%(count)s pairs wait for an adjudicator now.", count
    )
    message = words % {"count": f"{count:,}"}
    messages.success(request, message if count else _("No pairs skipped by all annotators are left."))
    return redirect("collection", scope.collection.name)


@action("results")
@require_GET
@explain_failure
def two_assessors(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the cross table of two assessors, and the pairs of the selected cell."""
    filters = PairFilters.read(request.GET)
    if not (filters.a and filters.b):
        return redirect(quality_address(scope.collection, "agreement"))
    try:
        comparison = crossing.compare_assessors(
            scope.collection, filters, request.GET.get("page"), hides_people=not scope.may_admin
        )
    except BadInput as error:
        raise Http404(str(error)) from error
    if file := download(request, [comparison["chart"]]):
        return file
    context = {"scope": scope, "two": comparison, "filters": filters}
    return render(request, "data/differing_pairs.html", context)


@action("admin")
@require_POST
def save_view(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save the filters and order of the table under a name."""
    query = request.POST.get("query", "")[:5000]
    try:
        view = saved_views.save_view(
            user=scope.user, collection=scope.collection, name=request.POST.get("name", ""), query=query
        )
    except BadInput as error:
        return render_pairs(request, scope, QueryDict(query), problem=str(error))
    messages.success(request, _("View “%(name)s” saved.") % {"name": view.name})
    return _redirect_to_table(scope, view.query)


@action("admin")
@require_POST
def change_view(request: HttpRequest, scope: Scope, view: int) -> HttpResponse:
    """Rename one of the person's own views, or with `delete` delete it."""
    saved_view = get_object_or_404(SavedView, pk=view, user=scope.user, collection=scope.collection)
    query = request.POST.get("query", "")[:5000]
    if "delete" in request.POST:
        saved_view.delete()
        messages.success(request, _("View “%(name)s” deleted.") % {"name": saved_view.name})
        return _redirect_to_table(scope, query)
    try:
        saved_views.rename_view(saved_view, request.POST.get("name", ""))
    except BadInput as error:
        return render_pairs(request, scope, QueryDict(query), problem=str(error))
    messages.success(request, _("View renamed."))
    return _redirect_to_table(scope, query)


def _redirect_to_table(scope: Scope, query: str) -> HttpResponse:
    query = PairFilters.read(QueryDict(query)).query()
    return redirect(f"{reverse('pairs', args=[scope.collection.name])}{'?' if query else ''}{query}")
