"""API operations on gates: tell a verdict, and list them."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from api.authentication import may, scope_of
from api.operations import COLLECTION_PATH, operation
from api.paging import Cursor, Limit, Page, page_of
from benchmark.gate import selectors, services
from benchmark.models import Gate

router = Router(tags=["gates"])


class GateOut(Schema):
    """A verdict on a new run beside an old one."""

    number: int
    verdict: str = Field(description="One of pass, fail and cannot_tell.")
    reason: str
    run: str = Field(description="Name of the new run.")
    against: str = Field(description="Name of the old run.")
    measures: dict[str, Any] = Field(
        description="By name: old, new, change, the interval low to high, max_drop; least, most: the change over all "
        "ways to judge the unjudged documents; lowest, highest: the ends of its interval over them."
    )
    queries: int
    deciding_pairs: int = Field(description="Number of unjudged pairs that decide; 0 unless they do.")
    qrels: int = Field(description="Number of the version of the qrels.")
    confidence: float
    weights: str = Field(description="plain, or counts: weighted by the query log's counts.")
    losses: dict[str, Any] = Field(description="Queries that lost most by a measure.")
    filling: int | None = Field(description="Number of the hole filling that judges what decides; null: none.")
    created_at: datetime


def show_gate(gate: Gate) -> dict[str, Any]:
    """Return the API's form of a verdict."""
    return {**selectors.gate_document(gate), "number": gate.number, "created_at": gate.created_at}


operation(router, services.decide_gate, "POST", "/gates", response=GateOut, show=show_gate)


@router.get(f"{COLLECTION_PATH}/gates", auth=may("results"), response=Page[GateOut])
def list_gates(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the verdicts, oldest first."""
    return page_of(selectors.gates_of(scope_of(request).collection), after, limit, show_gate)
