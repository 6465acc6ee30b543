"""The home of a collection: the whole story for admins, one's own work for everybody else."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation.dashboard import overview
from annotation.dashboard.collection import build_dashboard
from annotation.permissions import Scope, action
from corpus.chart_downloads import download
from judges.models import Campaign

STOP_POLLING = 286
"""HTMX stops asking when it gets this status."""


@action("member")
@require_GET
def home(request: HttpRequest, scope: Scope) -> HttpResponse:
    """One address for all roles; what a role may not see is never read."""
    if scope.may_admin:
        return _admin_home(request, scope)
    own = overview.own_work(scope.member)
    return render(request, "dashboard/own_home.html", {"scope": scope, "section": "home", "own": own})


def _admin_home(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The page, or for HTMX its changing part, until the campaign runs no more."""
    newest = Campaign.judging.filter(collection=scope.collection).order_by("-pk").first()
    board = build_dashboard(scope.collection, newest)
    if file := download(request, board.charts):
        return file
    story = board.story
    context = {"scope": scope, "section": "home", "board": board, "story": story, "status": story.status}
    if not request.headers.get("HX-Request"):
        return render(request, "dashboard/home.html", context)
    return render(request, "dashboard/_story.html", context, status=200 if story.is_live else STOP_POLLING)
