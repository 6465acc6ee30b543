"""GET /metrics: what this instance does, in the words of Prometheus; for who shows the token, or this machine alone.

It stands beside the probes (config/health.py), before sessions and hosts: who scrapes has neither.
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
# A proxy sends these: the visitor is then not whoever connects, even from this machine.
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via")
REFUSAL = "Set QUORUM_METRICS_TOKEN and send it: “Authorization: Bearer TOKEN”.\n"


class MetricsMiddleware(MiddlewareMixin):
    """Answers the one address; every other request goes on."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path_info != ADDRESS or request.method not in ("GET", "HEAD"):
            return None
        if not may_read(request):
            response = HttpResponse(REFUSAL, content_type="text/plain; charset=utf-8", status=401)
            response.headers["WWW-Authenticate"] = "Bearer"
        else:
            requests = ExportToDjangoView(request).content  # Of all processes of this web server.
            response = HttpResponse(write_metrics() + requests, content_type=CONTENT_TYPE_LATEST)
        response.headers["Cache-Control"] = "no-store"
        return response


def may_read(request: HttpRequest) -> bool:
    """Return whether the request shows the token; where none is set, whether it comes from this machine by itself."""
    if settings.METRICS_TOKEN:
        kind, _blank, shown = request.headers.get("Authorization", "").partition(" ")
        # In constant time, so that the token cannot be guessed letter by letter.
        return kind.lower() == "bearer" and hmac.compare_digest(shown.encode(), settings.METRICS_TOKEN.encode())
    # In production a proxy stands in front, and all come from its address.
    if settings.PRODUCTION or any(name in request.headers for name in FORWARDED):
        return False
    request.get_host()  # refuses another host's name, which a page elsewhere may have pointed here (DNS rebinding)
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def write_metrics() -> bytes:
    """Return the metrics of the instance, read now."""
    registry = CollectorRegistry()
    registry.register(instance_metrics.InstanceCollector())
    return generate_latest(registry)
