"""API operations on hole fillings: estimate, start, list, read, finish and cancel."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from actions.services import Actor
from api.authentication import MANAGE, may, scope_of
from api.estimates import JobEstimateOut, show_estimate
from api.idempotency import once
from api.operations import COLLECTION_PATH, estimate_operation, operation
from api.paging import Cursor, Limit, Page, page_of
from benchmark.hole_filling import planning, selectors, services
from benchmark.models import Filling

# Clients read the fields below by these names, so the names cannot change: `judged` means by the qrels, `known` means
# by people, and `before` and `after` are versions of the qrels. In `list_fillings`, `after` is the cursor of the page.
router = Router(tags=["hole filling"])
FILLINGS_PATH = "/hole-fillings"  # After the path of the collection.


class FillingEstimateOut(JobEstimateOut):
    """The estimate of a hole filling: the pairs in its pool, and the calls to judges about those still unjudged."""

    queries: int = Field(description="Number of queries with documents in the pool.")
    pool: int = Field(description="Number of pairs in the pool: the documents of all runs down to the depth.")
    judged: int = Field(description="Number of pairs in the pool that the qrels already contain.")
    candidates: int = Field(description="Number of pairs in the pool that the qrels do not contain yet.")
    known: int = Field(description="Number of candidates that people have already labelled; they are not judged again.")


class FillingOut(Schema):
    """A hole filling. Its campaign can be paused and resumed like any other."""

    number: int
    state: str = Field(
        description="One of preparing, judging, people (waiting for people), finishing, filled and cancelled."
    )
    runs: list[str] = Field(description="Names of the runs whose documents make the pool.")
    depth: int = Field(description="Number of documents of each run and query that enter the pool.")
    before: int = Field(description="Number of the version of the qrels that is completed.")
    after: int | None = Field(description="Number of the filled version; null until it is made.")
    campaign: int | None = Field(
        description="Number of the campaign that asks the judges; null before it starts, or if people judge every pair."
    )
    policy: str = Field(description="One of people, debate+ensemble, debate, ensemble and single.")
    funnel: dict[str, Any] = Field(
        description="Numbers of pairs by step, such as pool, judged, known, asked, filtered, labelled and failed."
    )
    error: str = Field(description="Why the filling could not be prepared or finished; empty without an error.")
    made_by: str = Field(description="Name of the user who started the filling.")
    created_at: datetime
    ended_at: datetime | None = Field(description="Null until the filling is filled or cancelled.")


def show_filling(filling: Filling) -> dict[str, Any]:
    """Return the API's form of a filling that a service has just returned."""
    # Read again: the object may be older than what the service wrote to its row.
    return selectors.current_document(selectors.find_filling(filling.collection, filling.number))


def show_filling_estimate(filling_estimate: planning.FillingEstimate) -> dict[str, Any]:
    """Return the estimate of a hole filling as the API shows it."""
    return {**filling_estimate["preview"], **show_estimate(filling_estimate["estimate"])}


# The services are actions, and their registrations contain the roles that may call them, the fields of the body, and
# the names and descriptions in the documentation of the API.
operation(router, services.start_filling, "POST", FILLINGS_PATH, response=FillingOut, show=show_filling)
estimate_operation(
    router,
    services.start_filling,
    planning.estimate_filling,
    FILLINGS_PATH,
    response=FillingEstimateOut,
    show=show_filling_estimate,
)


@router.post(f"{COLLECTION_PATH}{FILLINGS_PATH}/{{number}}/{{act}}", auth=may("admin", MANAGE), response=FillingOut)
@decorate_view(once)
def control_filling(request: HttpRequest, name: str, number: int, act: Literal["finish", "cancel"]) -> Any:
    """Finish a hole filling with what is settled by now, or cancel it; judgments are kept."""
    scope = scope_of(request)
    filling = services.FILLING_ACTIONS[act](Actor.of(scope), selectors.find_filling(scope.collection, number))
    return show_filling(filling)


@router.get(COLLECTION_PATH + FILLINGS_PATH, auth=may("admin"), response=Page[FillingOut])
def list_fillings(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the hole fillings, oldest first, each with the funnel that was last counted."""
    fillings = selectors.fillings_of(scope_of(request).collection)
    # Funnels are not counted here, because that takes at least one statement for each filling.
    return page_of(fillings, after, limit, selectors.document_with_stored_funnel)


@router.get(f"{COLLECTION_PATH}{FILLINGS_PATH}/{{number}}", auth=may("admin"), response=FillingOut)
def read_filling(request: HttpRequest, name: str, number: int) -> Any:
    """Read a hole filling, with its funnel counted now."""
    return selectors.current_document(selectors.find_filling(scope_of(request).collection, number))
