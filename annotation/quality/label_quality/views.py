"""The page of label quality, and its actions on label audits: draw more, send a route to people, stop it."""

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
from annotation.quality.label_quality.loading import find_campaign, load_readiness
from annotation.work.aspects.review_figures import measure_reviews
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.models import Pair
from corpus.models.aspects import AspectReview
from corpus.numbered import find_numbered
from judges.costs import counters
from judges.domain.audits import OVERLAP
from judges.engine import audit_sampling
from judges.models import Campaign


@action("results")
@require_GET
def quality(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show label audits, agreement and Dawid-Skene estimates; agreement over time loads when it comes into view."""
    context, heat = describe_agreement(request, scope)
    if file := download(request, [heat]):
        return file
    # The audits of the campaign that the address names, or else of all current automatic labels.
    collection = scope.collection
    number = request.GET.get("campaign", "")
    requested = find_campaign(collection, number) if number else None
    audits = None if requested else measure_collection_audits(collection)
    campaign = requested or (find_numbered(Campaign.judging, collection, audits.campaign) if audits else None)
    ended = campaign is not None and campaign.state in audit_sampling.ENDED
    if campaign is not None:
        # A running campaign draws its audits by itself: more are offered once it has ended.
        left = audit_sampling.remaining_by_stratum(campaign.pk) if ended else None
        audits = measure_audits(collection, campaign, counters.read(campaign.pk), left)
    labelling = Campaign.judging.filter(collection=collection, tallies__key__startswith="route:", tallies__value__gt=0)
    campaigns = list(labelling.distinct().order_by("-pk"))
    context |= {
        "campaign": campaign,
        "chosen": requested,
        "campaigns": campaigns if len(campaigns) > 1 or requested else [],
        "audits": audits,
        "ended": ended,
    }
    # The pairs on which Dawid-Skene and the majority differ.
    rows: list[dict[str, Any]] = context["second"]["rows"] if context["second"] else []  # type: ignore[index]
    pairs = Pair.objects.select_related("query", "document").in_bulk([row["pair"] for row in rows])
    context["differing"] = [(pairs[row["pair"]], row) for row in rows if row["pair"] in pairs]
    reviews = AspectReview.objects.filter(query__collection=collection, state=AspectReview.State.SUBMITTED)
    if collection.lab and reviews.exists():
        context["figures"] = measure_reviews(scope.collection)
    return render(request, "label_quality/quality.html", {**context, "scope": scope})


@action("admin")
@require_GET
def readiness(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show whether the labels can be exported, as a fragment of the exports page; without HTMX the Quality page."""
    if not request.headers.get("HX-Request"):
        return redirect("quality", scope.collection.name)
    context = {"scope": scope, "quality": load_readiness(scope.collection)}
    return render(request, "label_quality/_readiness.html", context)


@action("admin")
@require_POST
def draw_more(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Draw more audits, of a route or of all, up to the number on the page: a second click draws nothing."""
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
    """Show what would be sent to people; POST sends it."""
    row = find_campaign(scope.collection, campaign)
    # The form posts the route; the link to this page has it in its address.
    route = services.find_route((request.POST or request.GET).get("route", ""))
    if request.method == "POST":
        sent = services.send_route(Actor.of(scope), row, route)["pairs"]
        words = _("%(sent)s pairs now wait for people, with the debate and the label hidden.")
        messages.success(request, words % {"sent": f"{sent:,}"})
        return redirect(quality_address(scope.collection, "audits"))
    audits = measure_audits(scope.collection, row, counters.read(row.pk))
    measured = {audited.key: audited for audited in audits.routes}.get(route.key) if audits else None
    pairs = len(services.unasked_pairs(row, route))
    context = {"scope": scope, "campaign": row, "route": route, "measured": measured, "audits": audits}
    context |= {"left": pairs, "judgments": pairs * OVERLAP, "words": row.describe_route(route)}
    return render(request, "label_quality/audit_to_people.html", context)


@action("admin")
@require_POST
def go_on(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Reset a route's circuit breaker so that it labels again; `stop` trips it again."""
    route, on = services.find_route(request.POST.get("route", "")), "stop" not in request.POST
    row = find_campaign(scope.collection, campaign)
    services.switch_route(Actor.of(scope), row, route, on=on)
    if on:
        done = _("Automatic labelling resumed for the route “%(words)s”.")
    else:
        done = _("Automatic labelling stopped for the route “%(words)s”: people judge its further pairs.")
    messages.success(request, done % {"words": row.describe_route(route)})
    return redirect(quality_address(scope.collection, "audits"))


@action("admin")
@require_POST
def recompute(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Recompute the stored statistics of a large collection, in a worker where one is running."""
    if request.headers.get("HX-Request"):  # A page with old figures asks by itself: no one's action, so not recorded.
        statistics.STATISTICS.refresh(scope.collection)
        return HttpResponse(status=204)
    with transaction.atomic():
        done = statistics.STATISTICS.refresh(scope.collection) is not None
        record(scope, "statistics.asked")
    messages.info(request, _("Figures updated.") if done else _("Recomputing in the background."))
    return redirect("collection", scope.collection.name)


@action("results")
@require_GET
def over_time(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the agreement of judges and of people over time; HTMX gets the section alone."""
    context: dict[str, object] = {"scope": scope, "population": kappas.OVER_TIME}
    try:
        with cached_results.measuring(scope.collection):
            figures = statistics.cached_statistics(scope.collection)
            chart = statistics.agreement_chart(scope.collection.name, figures)
        context |= {"found": figures, "chart": chart}
    except cached_results.MeasuringFailed as error:
        chart = None
        context["failure"] = str(error)
    if file := download(request, [chart]):
        return file
    template = "_over_time" if request.headers.get("HX-Request") else "over_time"
    return render(request, f"label_quality/{template}.html", context)
