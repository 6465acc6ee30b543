"""Traces: a request, the statements and tasks below it, and no text in any span."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from celery import signals
from django.db import ProgrammingError, connection
from django.test import Client
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from annotation.models import Role
from config.operating import tracing
from tests.factories import client_of, make_collection, make_member


@pytest.fixture
def exporter(db: None) -> Iterator[InMemorySpanExporter]:
    """Traces of this process, kept in memory."""
    found = InMemorySpanExporter()
    own = connection.connection.cursor_factory
    tracing.start(found)
    # The connection of the tests is older; one that is made from now on has cursors with spans.
    with connection.get_new_connection(connection.get_connection_params()) as traced:
        connection.connection.cursor_factory = traced.cursor_factory
    yield found
    connection.connection.cursor_factory = own
    tracing.stop()


def spans(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    tracing._started[0].force_flush()
    return list(exporter.get_finished_spans())


def everything(found: list[ReadableSpan]) -> str:
    return " ".join(span.to_json() for span in found)


def test_a_request_is_a_span_with_its_route_and_its_statements_stand_below_it(exporter: InMemorySpanExporter) -> None:
    client = client_of(make_member(make_collection("books"), "alice", Role.ADMIN))
    exporter.clear()
    assert client.get("/c/books/?q=secret-words").status_code == 200
    found = spans(exporter)
    (request,) = [span for span in found if span.parent is None and span.kind.name == "SERVER"]
    assert request.attributes and request.attributes["http.route"] == "c/<slug:name>/"
    below = [span for span in found if span.parent and span.parent.span_id == request.context.span_id]
    # "(SELECT" begins a statement of several parts.
    names = {"SELECT", "UPDATE", "INSERT", "SAVEPOINT", "RELEASE", "WITH", "(SELECT", "SET"}
    assert below and {span.name for span in below} <= names
    assert "secret-words" not in everything(found) and "alice" not in everything(below)


def test_neither_a_token_of_an_address_nor_an_errors_message_is_in_a_span(exporter: InMemorySpanExporter) -> None:
    Client().get("/invitations/Aa0-token-that-holds/?next=secret-words")
    with pytest.raises(ProgrammingError, match="secret-value"), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM not_there WHERE name = %s", ["secret-value"])
    found = spans(exporter)
    assert found[-1].status.status_code.name == "ERROR" and not found[-1].events
    assert found[-1].status.description is None
    text = everything(found)
    assert "FROM not_there" in text
    assert not [word for word in ("Aa0-token-that-holds", "secret-words", "secret-value") if word in text]


def test_a_task_continues_the_trace_of_who_asked_for_it(exporter: InMemorySpanExporter) -> None:
    headers: dict[str, Any] = {"id": "7"}
    with tracing._started[0].get_tracer("tests").start_as_current_span("asks") as asks:
        body = ((), {}, {})
        signals.before_task_publish.send(sender="judges.drain", headers=headers, body=body, routing_key="judge")
    assert headers.get("traceparent", "").split("-")[1] == format(asks.get_span_context().trace_id, "032x")
    assert Client(headers={"host": "10.0.0.7:8000"}).get("/healthz").status_code == 200
    assert Client().get("/accounts/login/").headers["X-Request-ID"]


def test_a_missing_extra_stops_the_program_with_one_line(settings, monkeypatch, capsys) -> None:
    tracing.refuse_without_extra()
    settings.TRACES = "otlp"
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.django", None)
    for act in (tracing.start, tracing.refuse_without_extra):
        with pytest.raises(SystemExit, match="2"):
            act()
        assert "make install-tracing" in capsys.readouterr().err
    settings.TRACES = ""
    tracing.start()
    assert tracing._started == []
