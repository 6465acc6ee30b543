"""The Quality page, and what its audits do: draw more, hand a route to people, stop it."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.pages import form_of
from actions.services import Actor
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.agreement import cached_results
from annotation.agreement.views import describe_agreement, quality_address
from annotation.quality.label_quality import kappas, services, statistics
from annotation.quality.label_quality.audits import measure_audits, measure_collection_audits
from annotation.quality.label_quality.loading import find_campaign
from annotation.work.aspects.review_figures import has_reviews, measure_reviews
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.models import Pair
from corpus.numbered import find_numbered
from judges.campaigns import audit_sampling, counters
from judges.domain.audits import OVERLAP
from judges.models import Campaign


@action("admin")
@require_GET
def quality(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show how good the labels are: label audits, agreement, Dawid-Skene; agreement over time loads when in view."""
    context, heat = describe_agreement(request, scope)
    if file := download(request, [heat]):
        return file
    context |= _audits_context(request, scope)
    # The pairs on which Dawid-Skene and the majority differ.
    rows: list[dict[str, Any]] = context["second"]["rows"] if context["second"] else []  # type: ignore[index]
    pairs = Pair.objects.select_related("query", "document").in_bulk([row["pair"] for row in rows])
    context["differing"] = [(pairs[row["pair"]], row) for row in rows if row["pair"] in pairs]
    if has_reviews(scope.collection):
        context["figures"] = measure_reviews(scope.collection)
    return render(request, "label_quality/quality.html", {**context, "scope": scope})


def _audits_context(request: HttpRequest, scope: Scope) -> dict[str, object]:
    """Accuracy of the automatic labels by route: of all that stand, or of the campaign that the address names."""
    collection = scope.collection
    number = request.GET.get("campaign", "")
    chosen = find_campaign(collection, number) if number else None
    audits = None if chosen else measure_collection_audits(collection)
    campaign = chosen or (find_numbered(Campaign.judging, collection, audits.campaign) if audits else None)
    ended = campaign is not None and campaign.state in audit_sampling.ENDED
    if campaign is not None:
        # While a campaign runs it draws its audits by itself: more are offered once it has ended.
        left = audit_sampling.remaining_by_stratum(campaign.pk) if ended else None
        audits = measure_audits(collection, campaign, counters.read(campaign.pk), left)
    labelling = Campaign.judging.filter(collection=collection, tallies__key__startswith="route:", tallies__value__gt=0)
    every = list(labelling.distinct().order_by("-pk"))
    return {
        "campaign": campaign,
        "chosen": chosen,
        "campaigns": every if len(every) > 1 or chosen else [],
        "audits": audits,
        "ended": ended,
    }


@action("admin")
@require_POST
def draw_more(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Draw more audits, of a route or over all, up to the number that the page named: pressed twice it is the same."""
    row = find_campaign(scope.collection, campaign)
    form = form_of(services.draw_audits, request)
    if not form.is_valid():
        raise Http404(_("Route not found."))
    try:
        options: Any = form.options
        drawn = services.draw_audits(Actor.of(scope), row, options)
        words = _("%(drawn)s more blind checks now wait for people.")
        messages.success(request, words % {"drawn": f"{drawn['pairs']:,}"})
    except BadInput as error:
        messages.error(request, str(error))
    return redirect(quality_address(scope.collection, "audits", f"campaign={row.number}"))


@action("admin")
@require_http_methods(["GET", "POST"])
def to_people(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """First what would go to people; it goes when that was confirmed."""
    row = find_campaign(scope.collection, campaign)
    # Forms post the route; the link to the page that confirms has it in its address.
    route = services.find_route((request.POST or request.GET).get("route", ""))
    if request.method == "POST":
        sent = services.send_route(Actor.of(scope), row, route)["pairs"]
        words = _("%(sent)s pairs now wait for people, with the debate and the label hidden.")
        messages.success(request, words % {"sent": f"{sent:,}"})
        return redirect(quality_address(scope.collection, "audits"))
    found = measure_audits(scope.collection, row, counters.read(row.pk))
    measured = next((one for one in found.routes if one.key == route.key), None) if found else None
    left = len(services.unasked_pairs(row, route))
    context = {"scope": scope, "campaign": row, "route": route, "measured": measured, "audits": found}
    context |= {"left": left, "judgments": left * OVERLAP}
    return render(request, "label_quality/audit_to_people.html", context)


@action("admin")
@require_POST
def go_on(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Reset a route's circuit breaker so that it labels again; `stop` trips it again."""
    route, on = services.find_route(request.POST.get("route", "")), "stop" not in request.POST
    services.switch_route(Actor.of(scope), find_campaign(scope.collection, campaign), route, on=on)
    if on:
        done = _("Automatic labelling resumed for the route “%(words)s”.")
    else:
        done = _("Automatic labelling stopped for the route “%(words)s”: people judge its further pairs.")
    messages.success(request, done % {"words": route.description})
    return redirect(quality_address(scope.collection, "audits"))


@action("admin")
@require_POST
def recompute(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Compute the stored statistics of a large collection anew; by a worker where one lives."""
    if request.headers.get("HX-Request"):  # a page that saw old figures asks by itself: nobody's act
        statistics.STATISTICS.refresh(scope.collection)
        return HttpResponse(status=204)
    with transaction.atomic():
        done = statistics.STATISTICS.refresh(scope.collection) is not None
        record(scope, "statistics.asked")
    messages.info(request, _("Figures updated.") if done else _("Recomputing in the background."))
    return redirect("collection", scope.collection.name)


@action("admin")
@require_GET
def over_time(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Agreement of judges and of people, together and by day or week; a section alone where HTMX asks for it."""
    context: dict[str, object] = {"scope": scope, "population": kappas.OVER_TIME}
    try:
        with cached_results.measuring(scope.collection):
            found = statistics.cached_statistics(scope.collection)
            chart = statistics.agreement_chart(scope.collection.name, found)
        context |= {"found": found, "chart": chart}
    except cached_results.MeasuringFailed as error:
        chart = None
        context["failure"] = str(error)
    if file := download(request, [chart]):
        return file
    part = request.headers.get("HX-Request")
    return render(request, f"label_quality/{'_over_time' if part else 'over_time'}.html", context)
