"""API operations on hole fillings: estimate, start, list, read, finish and cancel."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from api.authentication import may, scope_of
from api.estimates import JobEstimateOut, show_estimate
from api.operations import HERE, estimate_operation, operation
from api.paging import Cursor, Limit, Page, page_of
from benchmark.hole_filling import planning, selectors, services
from benchmark.models import Filling

router = Router(tags=["hole filling"])
PATH = "/hole-fillings"


class FillingEstimateOut(JobEstimateOut):
    """The estimate of a hole filling: the pairs in its pool, and the calls to judges about those still unjudged."""

    queries: int = Field(description="Number of queries with documents in the pool.")
    pool: int = Field(description="Number of pairs in the pool: the documents of all runs down to the depth.")
    judged: int = Field(description="Number of pairs in the pool that the qrels already contain.")
    candidates: int = Field(description="Number of pairs in the pool that the qrels do not contain yet.")
    known: int = Field(
        description="Number of candidates that people have already labelled; nobody is asked about them again."
    )


class FillingOut(Schema):
    """A hole filling. Its campaign can be paused and resumed like any other."""

    number: int
    state: str = Field(description="One of preparing, judging, people, finishing, filled and cancelled.")
    runs: list[str] = Field(description="Names of the runs whose documents make the pool.")
    depth: int = Field(description="Number of documents of each run and query that enter the pool.")
    before: int = Field(description="Number of the version of the qrels that is completed.")
    after: int | None = Field(description="Number of the filled version; null until it is made.")
    campaign: int | None = Field(
        description="Number of the campaign that asks the judges; null before it starts, or if people judge every pair."
    )
    policy: str = Field(description="One of people, debate+ensemble, debate, ensemble and single.")
    funnel: dict[str, Any] = Field(description="Numbers of pairs by step, as explained in docs/workshop.md.")
    error: str = Field(description="Why the filling could not be prepared or finished; empty without an error.")
    made_by: str = Field(description="Name of the user who started the filling.")
    created_at: datetime
    ended_at: datetime | None = Field(description="Null until the filling is filled or cancelled.")


def describe_filling(filling: Filling) -> dict[str, Any]:
    """Describe a filling as it now is in the database; the object that a service returns may be stale."""
    return selectors.show_filling(selectors.find_filling(filling.collection, filling.number))


operation(router, services.start_filling, "POST", PATH, response=FillingOut, show=describe_filling)
estimate_operation(
    router,
    services.start_filling,
    planning.estimate_filling,
    PATH,
    response=FillingEstimateOut,
    show=lambda result: {**result["preview"], **show_estimate(result["estimate"])},
)
for verb, service in services.ACTS.items():
    operation(
        router,
        service,
        "POST",
        f"{PATH}/{{number}}/{verb}",
        response=FillingOut,
        status=200,
        find=selectors.find_filling,
        show=describe_filling,
    )


@router.get(HERE + PATH, auth=may("admin"), response=Page[FillingOut])
def list_fillings(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the hole fillings, oldest first, each with the funnel that was last counted."""
    rows = selectors.fillings_of(scope_of(request).collection)
    # The stored funnel, because counting takes at least one statement for each filling; `read_filling` counts.
    return page_of(rows, after, limit, lambda filling: selectors.show_filling(filling, filling.funnel))


@router.get(f"{HERE}{PATH}/{{number}}", auth=may("admin"), response=FillingOut)
def read_filling(request: HttpRequest, name: str, number: int) -> Any:
    """Read a hole filling, with its funnel counted now."""
    return selectors.show_filling(selectors.find_filling(scope_of(request).collection, number))
