"""GET /metrics: the instance's metrics for Prometheus, with a token or, without one, only from this machine.

Like the probes (config/health.py), it comes before the middleware of sessions and hosts, because scrapers have neither.
"""

import hmac
import ipaddress

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django_prometheus.exports import ExportToDjangoView
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from config.operating import instance_metrics

ADDRESS = "/metrics"
# Headers of proxies: with one of them, the connection's address is not the visitor's.
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via")
REFUSAL = "Set QUORUM_METRICS_TOKEN and send it: “Authorization: Bearer TOKEN”.\n"


class MetricsMiddleware(MiddlewareMixin):
    """Answers the address /metrics before all other middleware."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path_info != ADDRESS or request.method not in ("GET", "HEAD"):
            return None
        if not may_read(request):
            response = HttpResponse(REFUSAL, content_type="text/plain; charset=utf-8", status=401)
            response.headers["WWW-Authenticate"] = "Bearer"
        else:
            request_metrics = ExportToDjangoView(request).content  # Of all processes of this web server.
            response = HttpResponse(write_metrics() + request_metrics, content_type=CONTENT_TYPE_LATEST)
        response.headers["Cache-Control"] = "no-store"
        return response


def may_read(request: HttpRequest) -> bool:
    """Return whether the request has the token; if none is set, whether it comes directly from this machine."""
    if settings.METRICS_TOKEN:
        kind, _blank, shown = request.headers.get("Authorization", "").partition(" ")
        # In constant time, so that the token cannot be guessed letter by letter.
        return kind.lower() == "bearer" and hmac.compare_digest(shown.encode(), settings.METRICS_TOKEN.encode())
    # In production, all requests come from the address of a proxy.
    if settings.PRODUCTION or any(name in request.headers for name in FORWARDED):
        return False
    request.get_host()  # Refuses other host names, which a foreign page may have redirected here (DNS rebinding).
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def write_metrics() -> bytes:
    """Return the current metrics of the instance."""
    registry = CollectorRegistry()
    registry.register(instance_metrics.InstanceCollector())
    return generate_latest(registry)
