"""Refusals as problem+json (RFC 9457): a status, a title, and in `detail` the message that commands and pages show."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from django.conf import settings
from django.core.exceptions import (
    NON_FIELD_ERRORS,
    BadRequest,
    ObjectDoesNotExist,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFilesSent,
)
from django.db import DatabaseError
from django.forms import BaseForm as Form
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from ninja import Field, NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError
from psycopg.errors import UniqueViolation
from pydantic import AfterValidator, ConfigDict

from actions.options import say_problem
from api.etags import PreconditionFailed
from corpus.errors import BadOption, Deleted, QuorumError, StateConflict
from corpus.races import explain_race

logger = logging.getLogger(__name__)
JSON = "application/problem+json"
REFERENCE = "#/components/schemas/{model}"


def clean_text(text: str) -> str:
    """Return a text as forms clean it: without NUL, which PostgreSQL refuses, and with plain line ends."""
    return text.replace("\x00", "").replace("\r\n", "\n").strip()


CleanText = Annotated[str, AfterValidator(clean_text)]


class RequestBody(Schema):
    """Body of a request. Unknown fields are refused, since they are most often typing errors."""

    model_config = ConfigDict(extra="forbid")


class FieldProblem(Schema):
    """A problem with one field: where it is in the request, and what is wrong."""

    field: str
    problem: str
    option: str = Field("", description="The option of an action that the problem is about.")


class ProblemDetails(Schema):
    """A refusal of a request."""

    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = []


def describe_refusals(*statuses: int) -> dict[int, Any]:
    """Return problems with these statuses, as an OpenAPI document lists an operation's responses."""
    content = {JSON: {"schema": {"$ref": REFERENCE.format(model=ProblemDetails.__name__)}}}
    titles = {int(status): status.phrase for status in HTTPStatus}
    return {
        status: {"description": titles.get(status, "Unknown Status Code"), "content": content} for status in statuses
    }


def describe_problems(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document the refusals that every operation may return, and their schema."""
    # Declared with each operation, nine models for each would cost seconds at every start.
    refusals = describe_refusals(400, 401, 403, 404, 409, 412, 413, 422, 429)
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"] |= refusals
    schema = ProblemDetails.model_json_schema(ref_template=REFERENCE)
    document["components"]["schemas"] |= schema.pop("$defs") | {ProblemDetails.__name__: schema}


def refuse(status: int, detail: str, errors: list[dict[str, str]] | None = None) -> HttpResponse:
    """Return a response with a problem."""
    detail = "; ".join(f"{error['field']}: {error['problem']}" for error in errors or []) or detail
    body = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail, "errors": errors or []}
    return JsonResponse(body, status=status, content_type=JSON)


def validate_form(form: Form, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a form's cleaned data. Raises ValidationError with the problem of each field.

    `names`: names of fields in the request, by their names in the form, where these differ.
    """
    if form.is_valid():
        return form.cleaned_data
    # A field with several problems is listed once, with all of them.
    names_in_request, errors = {NON_FIELD_ERRORS: "", **(names or {})}, []
    for field, problems in form.errors.items():
        location = ("body", *filter(None, names_in_request.get(field, field).split(".")))
        errors.append({"loc": location, "msg": " ".join(map(str, problems))})
    raise ValidationError(errors)


def handle_problems(api: NinjaAPI) -> None:
    """Answer each known error of Quorum or the framework with a problem; any other error is a fault and a 500."""

    def answers(*kinds: type[Exception], status: int) -> None:
        def handle(request: HttpRequest, error: Exception) -> HttpResponse:
            return refuse(status, str(error))

        for kind in kinds:
            api.add_exception_handler(kind, handle)  # type: ignore[arg-type]

    # Errors of services with a message for the user, mostly BadInput.
    answers(QuorumError, status=422)
    api.add_exception_handler(BadOption, refuse_option)  # type: ignore[arg-type]
    # The request is valid, but the state of its object has changed.
    answers(StateConflict, status=409)
    answers(PreconditionFailed, status=412)
    answers(PermissionDenied, status=403)
    answers(BadRequest, status=400)
    for kind in (DatabaseError, ObjectDoesNotExist, Deleted):
        api.add_exception_handler(kind, _refuse_race)  # type: ignore[arg-type]
    api.add_exception_handler(SuspiciousOperation, refuse_body)  # type: ignore[arg-type]
    api.add_exception_handler(Http404, lambda request, error: refuse(404, str(error) or _("Not found.")))
    api.add_exception_handler(HttpError, _refuse_http_error)  # type: ignore[arg-type]
    api.add_exception_handler(ValidationError, _refuse_validation)  # type: ignore[arg-type]


# Programs send no CSRF cookie: without this, a POST to an unknown address would get Django's page about CSRF.
@csrf_exempt
def answer_not_found(request: HttpRequest) -> HttpResponse:
    """Answer an address without an operation with a 404 problem instead of a page."""
    return refuse(404, _("Not found."))


def refuse_body(request: HttpRequest, error: SuspiciousOperation) -> HttpResponse:
    """Answer a body that Django refuses, with too many bytes, files or fields."""
    if isinstance(error, RequestDataTooBig):
        return refuse(413, "The request is larger than this server takes; send a file instead.")
    # Django counts files while it parses the body, before the operation does.
    if isinstance(error, TooManyFilesSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        return refuse(422, _("At most %(most)s files at once; put them in a zip archive.") % {"most": most})
    return refuse(400, str(error))


def refuse_option(request: HttpRequest, error: BadOption) -> HttpResponse:
    """Answer wrong options of an action, each with its name and where it is in the request."""
    errors = [
        {"field": ".".join(filter(None, ("body", option))), "problem": sentence, "option": option}
        for option, sentence in error.problems
    ]
    return refuse(422, str(error), errors)


def _refuse_race(request: HttpRequest, error: Exception) -> HttpResponse:
    # Two requests may create the same object at once: then a constraint of the database refuses the second.
    if isinstance(error.__cause__, UniqueViolation):
        return refuse(409, _("This was just created by someone else. Reload to see it."))
    if (race := explain_race(error)) is None:
        raise error
    if not isinstance(error, Deleted):
        # It may still be a fault: the log has the traceback.
        logger.warning("a race was lost", exc_info=error)
    return refuse(*race)


def _refuse_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error, AuthenticationError):
        response = refuse(401, _("Send a valid access token: “Authorization: Bearer quorum_…”."))
        # RFC 6750, section 3: a 401 names the expected scheme.
        response["WWW-Authenticate"] = "Bearer"
        return response
    response = refuse(error.status_code, str(error))
    if isinstance(error, Throttled) and error.wait:
        response["Retry-After"] = str(error.wait)
    return response


def _refuse_validation(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name each field by its path in the request, such as `body.grade`."""
    errors = []
    for details in error.errors:
        first, *path = map(str, details.get("loc", ())) or ("",)
        # ninja also names the parameter that holds the body.
        path = path[1:] if first == "body" and path[:1] == ["body"] else path
        option = path[0] if first == "body" and path else ""
        # Without a message all details are shown.
        problem = say_problem(details) if "type" in details else str(details.get("msg", details))
        errors.append({"field": ".".join([first, *path]), "problem": problem, "option": option})
    return refuse(422, "The request is not valid.", errors)
