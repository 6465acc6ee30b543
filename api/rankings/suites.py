"""Suites: collections that are measured together, for who may admin every one of them."""

from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view
from ninja.errors import AuthorizationError

from api.authentication import may
from api.etags import require_match
from api.idempotency import once
from api.models import AccessToken
from api.problems import CleanText, Given, validate_form
from api.routes.pages import find_row
from benchmark.answers import suites as answer_suites
from benchmark.forms import SuiteForm
from benchmark.models import Suite
from benchmark.suites import groups
from benchmark.suites.page import MEASURES, show_suite, suites_of
from benchmark.systems.chosen import K
from corpus.access import administered
from corpus.errors import BadInput
from corpus.holding import hold_row
from corpus.models import Collection

router = Router(tags=["suites"])
MANAGE = AccessToken.TokenScope.MANAGE


class SuiteIn(Given):
    """A suite, with its collections in the order of their columns."""

    name: str = Field(max_length=63)
    title: CleanText = Field("", max_length=200)
    members: list[str] = Field(min_length=1, max_length=groups.MOST, description="Names of collections.")


class SuiteOut(Schema):
    """A suite."""

    number: int
    name: str
    title: str
    members: list[str]


class SuiteSystemOut(Schema):
    """A system by members, and the unweighted mean; null where a member has nothing of it."""

    system: str
    values: list[dict[str, Any] | None]
    mean: dict[str, Any] | None
    tests: dict[str, Any]


class SuiteSystemsOut(Schema):
    """The systems of a suite by one measure, the best first."""

    measure: str
    members: list[str]
    systems: list[SuiteSystemOut]


class SuiteAnswerOut(Schema):
    """RAGAlign of a system and a generator by members, and the unweighted mean; system empty: over all systems."""

    system: str
    generator: str
    values: list[dict[str, Any] | None]
    mean: dict[str, Any] | None
    graded: dict[str, Any] = Field(description="values and mean of graded RAGAlign, by nDCG in place of Hit.")


@router.get("/suites", auth=may("site"), response=list[SuiteOut])
def list_suites(request: HttpRequest) -> Any:
    """List the suites of collections that you may admin, by name."""
    return [_show_suite(one) for one in suites_of(_require_every(request))]


@router.post("/suites", auth=may("site", MANAGE), response={201: SuiteOut})
@decorate_view(once)
def make_suite(request: HttpRequest, body: SuiteIn) -> Any:
    """Make a suite of collections that you may admin."""
    mine = _require_every(request)
    given = validate_form(SuiteForm(body.dict(), collections=mine))
    by_name = {one.name: one for one in mine}
    # In the order of the request, which is that of the columns; the form has checked that each is there.
    chosen = [by_name[name] for name in body.members]
    scope = request.scope  # type: ignore[attr-defined]
    made = groups.make_suite(name=given["name"], title=given["title"], collections=chosen, by=scope)
    return Status(201, _show_suite(made))


@router.get("/suites/{number}", auth=may("site"), response=SuiteOut)
def read_suite(request: HttpRequest, number: int) -> Any:
    """Read a suite."""
    return _show_suite(_find_suite(request, number))


@router.delete("/suites/{number}", auth=may("site", MANAGE), response={204: None})
def delete_suite(request: HttpRequest, number: int) -> Any:
    """Delete a suite; its collections and their reports stay."""
    with transaction.atomic():
        found = hold_row(_find_suite(request, number))
        require_match(request, SuiteOut, _show_suite(found))
        groups.delete_suite(found, by=request.scope)  # type: ignore[attr-defined]
    return Status(204, None)


@router.get("/suites/{number}/systems", auth=may("site"), response=SuiteSystemsOut)
def read_suite_systems(request: HttpRequest, number: int, measure: str = "ndcg") -> Any:
    """Read the systems of a suite by a measure: from each collection's report, and the unweighted mean."""
    if measure not in MEASURES:
        known = ", ".join(MEASURES)
        raise BadInput(_("unknown measure %(name)s; choose one of %(known)s") % {"name": repr(measure), "known": known})
    shown = show_suite(_find_suite(request, number), measure, work=False)
    members = [collection.name for collection, _report in shown["columns"]]
    return {"measure": measure, "members": members, "systems": shown["lines"]}


@router.get("/suites/{number}/answers", auth=may("site"), response=list[SuiteAnswerOut])
def read_suite_answers(request: HttpRequest, number: int) -> Any:
    """Read RAGAlign of each collection's newest evaluation of answers, and the unweighted mean."""
    found = groups.collections_of(_find_suite(request, number))
    return answer_suites.suite_lines([answer_suites.member_answers(one, K) for one in found])


def _require_every(request: HttpRequest) -> list[Collection]:
    """Return the collections that the person may admin. Raises AuthorizationError for a token of one collection."""
    token: AccessToken = request.access_token  # type: ignore[attr-defined]
    if token.collection_id is not None:
        raise AuthorizationError(message=_("This needs a token for all collections."))
    return list(administered(token.user))


def _find_suite(request: HttpRequest, number: int) -> Suite:
    """Return a suite all of whose collections the person may admin. Raises Http404."""
    mine = {one.pk for one in _require_every(request)}
    found = find_row(Suite.objects.all(), number, _("Suite not found."))
    # A 404 and no 403: who may not admin all of its collections must not learn that there is such a suite.
    if not {one.pk for one in groups.collections_of(found)} <= mine:
        raise Http404(_("Suite not found."))
    return found


def _show_suite(row: Suite) -> dict[str, Any]:
    named = {"number": row.pk, "name": row.name, "title": row.title}
    return {**named, "members": [one.name for one in groups.collections_of(row)]}
