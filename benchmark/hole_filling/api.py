"""API operations of hole filling: estimate, start, read, finish and cancel."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from api.authentication import may
from api.estimates import JobEstimateOut, show_estimate
from api.operations import HERE, estimate_operation, operation
from api.paging import Cursor, Limit, Page, page_of
from benchmark.hole_filling import planning, selectors, services

router = Router(tags=["hole filling"])
PATH = "/hole-fillings"


class FillingEstimateOut(JobEstimateOut):
    """Estimate of a hole filling: its pool, the pairs that are judged already, and what judges would be asked."""

    queries: int
    pool: int
    judged: int
    candidates: int
    known: int = Field(description="Of the candidates: people labelled them, nobody is asked again.")


class FillingOut(Schema):
    """A hole filling. Its campaign can be paused and resumed as every other one."""

    number: int
    state: str = Field(description="preparing, judging, people, finishing, filled or cancelled.")
    runs: list[str]
    depth: int
    before: int = Field(description="The version of the qrels that is completed.")
    after: int | None = Field(description="The filled version; null: there is none yet.")
    campaign: int | None = Field(description="Null: people judge every pair.")
    policy: str
    funnel: dict[str, Any] = Field(description="Pairs by step: docs/workshop.md.")
    error: str
    made_by: str
    created_at: datetime
    ended_at: datetime | None


def show(filling: Any) -> dict[str, Any]:
    """Describe a filling, read again from the database, as the service's row may be out of date."""
    return selectors.show_filling(selectors.find_filling(filling.collection, filling.number))


shown: dict[str, Any] = {"response": FillingOut, "show": show}
operation(router, services.start_filling, "POST", PATH, **shown)
estimate_operation(
    router,
    services.start_filling,
    planning.estimate_filling,
    PATH,
    response=FillingEstimateOut,
    show=lambda estimate: {**estimate["preview"], **show_estimate(estimate["estimate"])},
)
for act, service in services.ACTS.items():
    operation(router, service, "POST", f"{PATH}/{{number}}/{act}", find=selectors.find_filling, status=200, **shown)


@router.get(HERE + PATH, auth=may("admin"), response=Page[FillingOut])
def list_fillings(request: Any, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the hole fillings, the oldest first, as they were counted last."""
    # Counting again would take a statement or more for each filling; `read_filling` does that for one.
    rows = selectors.fillings_of(request.scope.collection)
    return page_of(rows, after, limit, lambda row: selectors.show_filling(row, row.funnel))


@router.get(f"{HERE}{PATH}/{{number}}", auth=may("admin"), response=FillingOut)
def read_filling(request: Any, name: str, number: int) -> Any:
    """Read how far a hole filling is."""
    return selectors.show_filling(selectors.find_filling(request.scope.collection, number))
