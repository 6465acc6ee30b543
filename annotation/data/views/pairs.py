"""The pairs of a collection, everything that is known about one of them, and those that two assessors graded."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from annotation.agreement.views import quality_address, says_why
from annotation.audit_log.recording import record
from annotation.data import pair_detail
from annotation.data import pairs as listing
from annotation.data import two_assessors as crossing
from annotation.permissions import Scope, action
from annotation.queue import skipped
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.models import Collection, Item, Pair
from judges.models import Campaign


@action("admin")
@require_GET
def pairs(request: HttpRequest, scope: Scope) -> HttpResponse:
    """A page of the list; filters and the key of the page stand in the URL."""
    filters = listing.PairFilters.read(request.GET)
    campaign = _get_campaign(scope.collection, filters.campaign)
    after, before = (_parse_key(request.GET.get(name, "")) for name in ("after", "before"))
    try:
        page = listing.load_page(scope.collection, filters, campaign=campaign, after=after, before=before)
    except BadInput as error:
        raise Http404(str(error)) from error
    context = {
        "scope": scope,
        "filters": filters,
        "page": page,
        "campaign": campaign,
        "states": listing.STATES,
        "reasons": Item.Reason.choices,
        "grades": range(scope.collection.grades + 1),
        "origins": listing.ORIGINS,
    }
    template = "data/_pair_list.html" if request.headers.get("HX-Request") else "data/pairs.html"
    return render(request, template, context)


@action("admin")
@require_GET
def pair(request: HttpRequest, scope: Scope, pair: int) -> HttpResponse:
    """One pair: texts, debate, votes, label, judgments, and every attempt with its prompt and raw answer."""
    found = get_object_or_404(Pair.objects.select_related("query", "document"), pk=pair, collection=scope.collection)
    context = {"scope": scope, "pair": found, "evidence": pair_detail.load_pair_detail(found)}
    return render(request, "data/pair.html", context)


@action("admin")
@require_POST
def hand_over_skipped(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Adjudicators get the pairs that everybody skipped."""
    with transaction.atomic():
        count = skipped.hand_over(scope.collection)
        record(scope, "skipped.handed-over", pairs=count)
    words = ngettext(
        "%(count)s pair waits for an adjudicator now.", "%(count)s pairs wait for an adjudicator now.", count
    )
    told = words % {"count": f"{count:,}"}
    messages.success(request, told if count else _("No pairs skipped by all annotators are left."))
    return redirect("collection", scope.collection.name)


@action("admin")
@require_GET
@says_why
def two_assessors(request: HttpRequest, scope: Scope) -> HttpResponse:
    """A cell of the matrix opened: the cross table of two assessors, and the pairs behind the cell that was asked."""
    filters = listing.PairFilters.read(request.GET)
    if not (filters.a and filters.b):
        return redirect(quality_address(scope.collection, "agreement"))
    try:
        found = crossing.compare_assessors(scope.collection, filters, request.GET.get("page"))
    except BadInput as error:
        raise Http404(str(error)) from error
    if file := download(request, [found["chart"]]):
        return file
    context = {"scope": scope, "two": found, "filters": filters}
    return render(request, "data/differing_pairs.html", context)


def _get_campaign(collection: Collection, asked: str) -> Campaign | None:
    """The campaign that was asked for, else the newest; None while there is none."""
    campaigns = Campaign.objects.filter(collection=collection)
    if not asked:
        return Campaign.judging.filter(collection=collection).order_by("-pk").first()
    if not asked.isdecimal() or len(asked) > 15:
        raise Http404(_("Campaign not found."))
    return get_object_or_404(campaigns, pk=int(asked))


def _parse_key(text: str) -> int:
    """The key of a page: the id of a pair; 0 where there is none."""
    return int(text) if text.isdecimal() and len(text) <= 18 else 0
