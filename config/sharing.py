"""Pages that anybody reads who has a link to one (annotation.home.sharing): the same fragments, without ways out.

What a fragment offers to those with an account is taken out (annotation.access.readable). A further page is a row of
PAGES and a member of ShareLink.SharedPage.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from annotation.access.permissions import ALLOWED, PublicScope, action
from annotation.access.readable import keep_readable
from annotation.home.overview.collection import load_overview
from annotation.home.sharing.selectors import find_link
from annotation.home.sharing.services import note_opening
from annotation.models import Role, User
from annotation.models.sharing import ShareLink
from annotation.people.accounts import rate_limits
from benchmark.gate.selectors import gates_page
from benchmark.models import Report
from benchmark.report.systems.chosen import newest_report, runs_of
from benchmark.report.views import read_report, show_leaderboard
from corpus.access import Action
from corpus.models import Collection


@dataclass(frozen=True)
class SharedView:
    """A page that can be shared: its fragment, its style sheets, and the context that it reads of a collection."""

    template: str
    styles: tuple[str, ...]
    read: Callable[[ShareLink, Mapping[str, str]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SharedScope:
    """The reader of a shared page, who has no account and may do nothing."""

    collection: Collection
    user: User | None = None
    may_admin: bool = False
    may_judge: bool = False
    may_adjudicate: bool = False


def _read_shared_report(link: ShareLink, _parameters: Mapping[str, str]) -> dict[str, Any]:
    reports = Report.objects.filter(collection=link.collection).select_related("before", "after")
    row = reports.filter(number=link.report).first() if link.report else newest_report(link.collection, compares=True)
    return {**read_report(row, runs_of(link.collection)), "form": {}, "versions": ()}


PAGES = {
    "overview": SharedView(
        "dashboard/_story.html",
        ("css/collections.css", "css/charts.css"),
        lambda link, _parameters: load_overview(link.collection),
    ),
    "leaderboard": SharedView(
        "benchmark/_leaderboard.html",
        ("css/benchmark.css",),
        # The reader may change the weights, and nothing else.
        lambda link, parameters: show_leaderboard(link.collection, weights=parameters.get("weights", "")),
    ),
    "report": SharedView("benchmark/_report.html", ("css/charts.css", "css/benchmark.css"), _read_shared_report),
    "gate": SharedView(
        "benchmark/gate/_gates.html", ("css/benchmark.css",), lambda link, _parameters: gates_page(link.collection)[0]
    ),
}
HEADERS = {
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


@action("public", "GET", "HEAD")
def shared_page(request: HttpRequest, scope: PublicScope, token: str) -> HttpResponse:
    """Show the page of a link; the same 404 for one that expired, was revoked or never existed."""
    is_free = rate_limits.count(request, "shared_page", "ip") is not None
    link = find_link(token) if is_free else None
    if link is None:
        context = {"scope": scope, "is_free": is_free}
        response = render(request, "sharing/closed.html", context, status=404 if is_free else 429)
    else:
        if request.method == "GET":
            note_opening(link)
        page = PAGES[link.page]
        # Without the request's context processors: a token of a form would set a cookie.
        context = {"scope": SharedScope(link.collection), "shared": True, "request": request}
        context |= page.read(link, request.GET)
        html = keep_readable(render_to_string(page.template, context), _is_content, request.path, is_closed=True)
        # Rendered by a template and only shortened since.
        context = {"link": link, "styles": page.styles, "fragment": mark_safe(html), "means": context.get("means")}
        response = render(request, "sharing/page.html", context)
    for name, value in HEADERS.items():
        response[name] = value
    return response


def _is_content(needed: Action) -> bool:
    """Return whether the text of a link to such a page is a part of the page: that of results, not of actions."""
    return Role.VIEWER in ALLOWED.get(needed, ())
