"""Requests by view, method and status, and how long they took, counted in each process of the web server.

`serve` names a folder in PROMETHEUS_MULTIPROC_DIR, in which the processes keep their counts, so
that whichever of them is asked answers for all. Without it a process answers for itself.
"""

from typing import Any

from django.http import HttpRequest
from django_prometheus.middleware import PrometheusAfterMiddleware
from prometheus_client import disable_created_metrics

FOLDER = "PROMETHEUS_MULTIPROC_DIR"

disable_created_metrics()  # type: ignore[no-untyped-call]  # When counting began: a series for each of ours.


class RequestMetricsMiddleware(PrometheusAfterMiddleware):  # type: ignore[misc]  # It has no types.
    """Counts requests, also those that a middleware below refuses."""

    def label_metric(self, metric: Any, request: HttpRequest, response: Any = None, **labels: str) -> Any:
        # A visitor may send any word as a method, and each would be a series of its own for ever.
        if "method" in labels:
            labels["method"] = self._method(request)
        return super().label_metric(metric, request, response, **labels)
