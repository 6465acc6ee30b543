"""The start page, and the home of a collection: the overview for admins, their own work for everybody else."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, SiteScope, action
from annotation.data.forms import CollectionForm
from annotation.home.overview.collection import build_dashboard
from annotation.home.overview.overview import collection_overview, list_collection_cards, own_work
from annotation.quality.label_quality.loading import find_campaign, load_label_quality
from annotation.work.quality_control import onboarding
from corpus.chart_downloads import download
from judges.campaigns.pair_states import recent_states
from judges.campaigns.selectors import campaign_status, collection_status

STOP_POLLING = 286  # HTMX stops polling at this status.


@action("site")
@require_GET
def site_home(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show the site's home: the person's collections with their progress."""
    return render(request, "dashboard/site_home.html", {"scope": scope, "cards": list_collection_cards(scope.user)})


@action("own-site")
@require_http_methods(["GET", "POST"])
def new_collection(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Show the form of a new collection; POST creates it."""
    form = CollectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            collection = form.save()
            record(scope, "collection.made", collection)
        messages.success(request, _("Collection created. Next: import documents and queries."))
        return redirect("collection", collection.name)
    status = 422 if form.is_bound else 200
    return render(request, "dashboard/new.html", {"scope": scope, "form": form}, status=status)


@action("member")
@require_GET
def collection_home(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show a collection's home, which depends on the person's role."""
    if scope.may_admin:
        return _admin_home(request, scope)
    context = {"scope": scope, "own": own_work(scope.member), "stop": onboarding.find_stop(scope.member)}
    return render(request, "dashboard/own_home.html", context)


def _admin_home(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Render the page, or for HTMX the part that changes while a campaign runs."""
    number = request.GET.get("campaign", "")
    selected = find_campaign(scope.collection, number) if number else None
    states = recent_states([scope.collection.pk])[scope.collection.pk]
    status = (
        campaign_status(scope.collection, selected, by_judge=False)
        if selected
        else collection_status(scope.collection, states, by_judge=False)
    )
    quality = load_label_quality(scope.collection, selected, status)
    overview = collection_overview(scope.collection, selected, status, states)
    board = build_dashboard(
        overview,
        quality,
        scope.collection,
        scope.user,
        judges=scope.may_judge,
        adjudicates=scope.may_judge and scope.may_adjudicate,
    )
    if file := download(request, [board[key] for key in ("labels", "flow", "accuracy", "agreement")]):
        return file
    context = {"scope": scope, "board": board, "overview": overview, "status": overview.status}
    if not request.headers.get("HX-Request"):
        return render(request, "dashboard/home.html", context)
    return render(request, "dashboard/_story.html", context, status=200 if overview.is_live else STOP_POLLING)
