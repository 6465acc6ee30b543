"""Addresses that pages had before: who comes by one is sent to today's (tests/site/addresses.txt has those to keep)."""

import re

from django.http import HttpRequest
from django.http.response import HttpResponseBase, HttpResponsePermanentRedirect
from django.views.defaults import page_not_found

FORMER = (
    (r"^(/c/[^/]+)/agreement/$", r"\1/quality/#agreement"),
    (r"^(/c/[^/]+)/agreement/over-time/$", r"\1/quality/#over-time"),
    (r"^(/c/[^/]+)/agreement/aggregate/$", r"\1/quality/#dawid-skene"),
    (r"^(/c/[^/]+)/audits/$", r"\1/quality/#audits"),
    (r"^(/c/[^/]+)/care/aside/(\d+)/back/$", r"\1/quality-control/exclusions/\2/reinstate/"),
    (r"^(/c/[^/]+)/care/test/$", r"\1/quality-control/qualification/"),
    (r"^(/c/[^/]+)/care/", r"\1/quality-control/"),
    (r"^(/c/[^/]+/people/\d+)/aside/$", r"\1/exclude/"),
    (r"^(/c/[^/]+/people/\d+)/test/$", r"\1/qualification/"),
    (r"^(/c/[^/]+)/agreement/people/", r"\1/members/"),
    (r"^(/c/[^/]+)/fairness([./])", r"\1/debate-effect\2"),
    (r"^(/c/[^/]+)/settings/money/$", r"\1/settings/costs/"),
    (r"^(/c/[^/]+)/settings/arms/$", r"\1/settings/experiment-arms/"),
    (r"^(/c/[^/]+)/benchmark/(?:safety|bounds)/", r"\1/benchmark/hole-filling/"),
    (r"^(/c/[^/]+/benchmark/report/\d+)/leaderboard/$", r"\1/"),
    (r"^(/c/[^/]+/benchmark/runs/make/)([a-z0-9-]+)/$", r"\1?type=\2"),
    (r"^(/c/[^/]+)/benchmark/filling/", r"\1/benchmark/hole-filling/"),
    (r"^(/c/[^/]+/aspects/\d+/passages/\d+)/away/$", r"\1/dismiss/"),
)


def current_address(path: str) -> str:
    """Return today's address of a page, with the section of it that it was; the same where it has not moved."""
    for pattern, address in FORMER:
        if re.match(pattern, path):
            return re.sub(pattern, address, path)
    return path


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Redirect a former address, a form with what it sent; answer 404 for any other."""
    # Former addresses are written as below the host; a site below a path has its path before them.
    prefix = request.path.removesuffix(request.path_info)
    address = prefix + current_address(request.path_info)
    if address == request.path:
        return page_not_found(request, exception)
    query = request.META.get("QUERY_STRING")
    # The query belongs before the section of the page.
    path, hash_, section = address.partition("#")
    joined = f"{'&' if '?' in path else '?'}{query}" if query else ""
    return HttpResponsePermanentRedirect(f"{path}{joined}{hash_}{section}", preserve_request=True)
