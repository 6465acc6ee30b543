"""Numbers and durations of requests by view, method and status, counted in each web process.

`serve` sets PROMETHEUS_MULTIPROC_DIR to a folder in which the processes share their counts, so that each of them can
answer for all. Without it, a process answers only for itself.
"""

from typing import Any

from django.http import HttpRequest
from django_prometheus.middleware import PrometheusAfterMiddleware
from prometheus_client import disable_created_metrics

FOLDER = "PROMETHEUS_MULTIPROC_DIR"

disable_created_metrics()  # type: ignore[no-untyped-call]  # They would double the number of series.


class RequestMetricsMiddleware(PrometheusAfterMiddleware):  # type: ignore[misc]  # It has no types.
    """Counts requests, including those that a later middleware refuses."""

    def label_metric(self, metric: Any, request: HttpRequest, response: Any = None, **labels: str) -> Any:
        # A visitor may send any word as a method, and each would permanently add a series.
        if "method" in labels:
            labels["method"] = self._method(request)
        return super().label_metric(metric, request, response, **labels)
