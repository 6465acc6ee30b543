"""Pages of trust: audits by route, what goes back to people, the second aggregate, agreement over time."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.agreement import cached_results, page
from annotation.agreement.grade_matrix import known_assessors
from annotation.agreement.views import says_why
from annotation.audit_log.recording import record
from annotation.label_quality import kappas, returning, statistics
from annotation.label_quality.audits import measure_audits
from annotation.permissions import Scope, action
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.models import Pair
from judges.campaigns import audit_sampling, counters, route_breakers
from judges.domain.audits import OVERLAP, Route, route_of
from judges.models import Campaign


@action("admin")
@require_GET
def audit(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Accuracy of the automatic labels by route, of the newest campaign or of the one that is asked for."""
    known = Campaign.judging.filter(collection=scope.collection).order_by("-pk")
    asked = request.GET.get("campaign", "")
    campaign = get_object_or_404(known, pk=asked) if asked.isdecimal() else known.first()
    ended = campaign is not None and campaign.state in audit_sampling.ENDED
    left = audit_sampling.remaining_by_stratum(campaign.pk) if campaign and ended else None
    found = measure_audits(scope.collection, campaign, counters.read(campaign.pk), left) if campaign else None
    context = {"scope": scope, "section": "agreement", "campaign": campaign, "audits": found, "ended": ended}
    return render(request, "label_quality/audits.html", context)


@action("admin")
@require_POST
def draw_more(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Draw more audits, of a route or over all, up to the number that the page named: pressed twice it is the same."""
    row = get_object_or_404(Campaign.judging.select_related("collection"), pk=campaign, collection=scope.collection)
    up_to, route = request.POST.get("up_to", ""), _parse_route(request).key if request.POST.get("route") else ""
    if not (up_to.isdecimal() and len(up_to) < 10):
        raise Http404(_("No such route."))
    back = redirect(f"{reverse('audits', args=[scope.collection.name])}?campaign={row.pk}")
    try:
        with transaction.atomic():
            drawn = audit_sampling.draw_more(campaign=row, up_to=int(up_to), route=route)
            record(scope, "audit.drawn", campaign=row.pk, route=route, pairs=drawn)
    except BadInput as error:
        messages.error(request, str(error))
        return back
    messages.success(
        request,
        _("%(drawn)s more pairs wait for people now, without the debate and without the label.")
        % {"drawn": f"{drawn:,}"},
    )
    return back


@action("admin")
@require_http_methods(["GET", "POST"])
def to_people(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """First what would go to people; it goes when that was confirmed."""
    row = get_object_or_404(Campaign.objects.select_related("collection"), pk=campaign, collection=scope.collection)
    route = _parse_route(request)
    if request.method == "POST":
        with transaction.atomic():
            sent = returning.to_people(row, route)
            record(scope, "audit.to-people", campaign=row.pk, route=route.key, pairs=sent)
        messages.success(
            request,
            _("%(sent)s pairs wait for people now, without the debate and without the label.") % {"sent": f"{sent:,}"},
        )
        return redirect("audits", scope.collection.name)
    found = measure_audits(scope.collection, row, counters.read(row.pk))
    measured = next((one for one in found.routes if one.key == route.key), None) if found else None
    context = {"scope": scope, "section": "agreement", "campaign": row, "route": route, "measured": measured}
    left = returning.count_unasked(row, route)
    context |= {"left": left, "judgments": left * OVERLAP, "audits": found}
    return render(request, "label_quality/audit_to_people.html", context)


@action("admin")
@require_POST
def go_on(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Let a stopped route label again; `stop` takes that back."""
    row = get_object_or_404(Campaign, pk=campaign, collection=scope.collection)
    route, on = _parse_route(request), "stop" not in request.POST
    with transaction.atomic():
        route_breakers.reset_route(row.pk, route.key, on=on)
        record(scope, "audit.go-on", campaign=row.pk, route=route.key, on=on)
    words = _("labels again") if on else _("is stopped: its further pairs go to people")
    messages.success(request, _("The route “%(words)s” %(words2)s.") % {"words": route.description, "words2": words})
    return redirect("audits", scope.collection.name)


def _parse_route(request: HttpRequest) -> Route:
    try:
        return route_of((request.POST or request.GET).get("route", ""))
    except ValueError:
        raise Http404(_("No such route.")) from None


@action("admin")
@require_GET
def aggregate(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The pairs on which Dawid-Skene and the majority differ, for the assessors that the URL names."""
    known = known_assessors(scope.collection)
    asked = page.read_filters(request.GET, scope.collection, known)
    found = cached_results.get_figures(scope.collection, asked, known)
    if found.second is None:
        return redirect(f"{reverse('agreement', args=[scope.collection.name])}?{asked.query()}")
    rows = found.second["rows"]
    pairs = Pair.objects.select_related("query", "document").in_bulk([row["pair"] for row in rows])
    context = {
        "scope": scope,
        "section": "agreement",
        "asked": asked,
        "found": found.second,
        "rows": [(pairs[row["pair"]], row) for row in rows if row["pair"] in pairs],
        "population": page.POPULATIONS[asked.population],
    }
    return render(request, "label_quality/aggregate.html", context)


@action("admin")
@require_POST
def recompute(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Compute the stored statistics of a large collection anew; a worker does it where one lives."""
    if request.headers.get("HX-Request"):  # a page that saw old figures asks by itself: nobody's act
        statistics.refresh_statistics(scope.collection)
        return HttpResponse(status=204)
    with transaction.atomic():
        done = statistics.refresh_statistics(scope.collection)
        record(scope, "statistics.asked")
    messages.info(request, _("The figures are new.") if done else _("A worker computes the figures anew."))
    return redirect("collection", scope.collection.name)


@action("admin")
@require_GET
@says_why
def over_time(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Agreement of judges and of people by day or week."""
    found = statistics.cached_statistics(scope.collection)
    chart = statistics.agreement_chart(scope.collection.name, found)
    if file := download(request, [chart]):
        return file
    context = {"scope": scope, "section": "agreement", "population": kappas.OVER_TIME, "found": found, "chart": chart}
    return render(request, "label_quality/over_time.html", context)
