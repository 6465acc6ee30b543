"""The inbox: what every page of an admin asks for, and the button that clears what has ended."""

from datetime import datetime
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_datetime

from annotation.access.permissions import Scope, action
from annotation.home.inbox import services
from annotation.home.inbox.selectors import read_inbox

STOP_POLLING = 286  # HTMX stops polling at this status.
MOST_NEWS = 3


@action("admin", "GET")
def inbox(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Return the count and, as notices, what ended after the query's `since`, except what the page shows itself.

    The status is 286 when nothing is running. Where the inbox differs from the query's `was`, the event
    `inbox-changed` tells the page.
    """
    adjudicates = scope.may_judge and scope.may_adjudicate
    box = read_inbox(scope.collection, scope.user, judges=scope.may_judge, adjudicates=adjudicates)
    since, page = _parse_time(request.GET.get("since", "")), urlsplit(request.headers.get("HX-Current-URL", "")).path
    news = [work for work in box.ended if since and work.at > since and urlsplit(work.address).path != page]
    context = {"scope": scope, "box": box, "news": news[:MOST_NEWS]}
    response = render(request, "inbox/_poll.html", context, status=200 if box.is_open else STOP_POLLING)
    if request.GET.get("was", box.signature) != box.signature:
        response["HX-Trigger"] = "inbox-changed"
    return response


@action("admin", "POST")
def mark_seen(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Clear what ended up to `until`, the newest that the page listed."""
    if until := _parse_time(request.POST.get("until", "")):
        services.mark_seen(scope.user, scope.collection, until)
    return redirect("collection", scope.collection.name)


def _parse_time(text: str) -> datetime | None:
    """Return a time with its zone; None for anything else."""
    try:
        time = parse_datetime(text)
    except ValueError:
        return None
    return time if time and time.tzinfo else None
