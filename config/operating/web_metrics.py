"""Requests by route and status, and how long they took, counted in each process of the web server.

`serve` names a folder in PROMETHEUS_MULTIPROC_DIR, in which the processes keep their counts, so that whichever of them
is asked answers for all. Without it a process answers for itself.
"""

import os

from django.http import HttpRequest
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, multiprocess

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
NO_ROUTE = "(none)"  # An address that no view has, a static file, or a request that was refused before.

disable_created_metrics()  # type: ignore[no-untyped-call]  # When counting began: a series for each of ours.
_registry = CollectorRegistry()
REQUESTS = Counter(
    "quorum_http_requests", "Requests that were answered.", ["method", "route", "status"], registry=_registry
)
SECONDS = Histogram(
    "quorum_http_request_seconds", "Seconds until an answer began.", ["route"], buckets=BUCKETS, registry=_registry
)


def count_request(request: HttpRequest, status: int, seconds: float) -> None:
    """Count an answered request under its route, which has names in place of values, so that there are few."""
    route = request.resolver_match.route if request.resolver_match else NO_ROUTE
    # A visitor may send any word as a method, and each would be a series of its own for ever.
    method = request.method if request.method in METHODS else "other"
    REQUESTS.labels(method, route, str(status)).inc()
    SECONDS.labels(route).observe(seconds)


def all_processes() -> CollectorRegistry:
    """Return the counts of all processes of this web server."""
    if not os.environ.get(FOLDER):
        return _registry
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry
