"""Traces by OpenTelemetry, if QUORUM_TRACES is set: requests, their tasks, and the statements of both.

OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME) set the destination,
the sampling and the service's name. Spans contain no texts: no values of statements, no queries of addresses, no
messages of errors.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from django.conf import settings

from config.operating.logs import masked_path
from embedded.refuse import refuse

MISSING = "QUORUM_TRACES needs the tracing extra: `make install-tracing`, or pip install -r requirements-tracing.txt."
# OpenTelemetry's middleware comes after ours that names the request, and after the probes.
BEFORE = "config.operating.request_log.RequestLogMiddleware"

_started: list[Any] = []


def refuse_without_extra() -> None:
    """End the program if the packages for QUORUM_TRACES are not installed."""
    try:
        spec = find_spec("opentelemetry.instrumentation.django")
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        refuse(MISSING)


def start(exporter: Any = None) -> None:
    """Trace this process if QUORUM_TRACES is set. Ends the program if the packages are missing."""
    if _started or not (settings.TRACES or exporter):
        return
    try:
        from opentelemetry.instrumentation.celery import CeleryInstrumentor
        from opentelemetry.instrumentation.django import DjangoInstrumentor
        from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        refuse(MISSING)
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or "quorum"})
    provider = TracerProvider(resource=resource)
    if exporter is None and settings.TRACES == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        exporter = ConsoleSpanExporter()
    elif exporter is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(without_texts(exporter)))
    position = settings.MIDDLEWARE.index(BEFORE) + 1
    DjangoInstrumentor().instrument(tracer_provider=provider, response_hook=mask_address, middleware_position=position)
    CeleryInstrumentor().instrument(tracer_provider=provider)  # type: ignore[no-untyped-call]
    PsycopgInstrumentor().instrument(tracer_provider=provider)
    _started.append(provider)


def stop() -> None:
    """Send the remaining spans and stop tracing."""
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.instrumentation.django import DjangoInstrumentor
    from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor

    while _started:
        DjangoInstrumentor().uninstrument()
        CeleryInstrumentor().uninstrument()  # type: ignore[no-untyped-call]
        PsycopgInstrumentor().uninstrument()
        _started.pop().shutdown()


def without_texts(exporter: Any) -> Any:
    """Return the exporter without error messages, in which databases quote values."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Status

    class WithoutTexts(SpanExporter):
        """Sends spans without events and without the description of their status."""

        def export(self, spans: Sequence[ReadableSpan]) -> Any:
            stripped_spans = [
                ReadableSpan(
                    name=span.name,
                    context=span.context,
                    parent=span.parent,
                    resource=span.resource,
                    attributes=span.attributes,
                    links=span.links,
                    kind=span.kind,
                    instrumentation_scope=span.instrumentation_scope,
                    status=Status(span.status.status_code),
                    start_time=span.start_time,
                    end_time=span.end_time,
                )
                for span in spans
            ]
            return exporter.export(stripped_spans)

        def shutdown(self) -> None:
            exporter.shutdown()

    return WithoutTexts()


def mask_address(span: Any, request: Any, response: Any) -> None:
    """Remove the query and secrets (like invitations' tokens) from the address in a request's span."""
    path = masked_path(request)
    for name in ("http.url", "url.full", "http.target", "url.path"):
        if name in (span.attributes or {}):
            span.set_attribute(name, path)
    if "url.query" in (span.attributes or {}):
        span.set_attribute("url.query", "")
