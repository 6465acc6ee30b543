"""Refusals as problem+json (RFC 9457): a status, a title, and in `detail` the sentence that commands and pages say."""

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
from corpus.holding import explain_race

logger = logging.getLogger(__name__)
JSON = "application/problem+json"
REFERENCE = "#/components/schemas/{model}"


def clean_text(text: str) -> str:
    """Return a text as forms keep it: without the character that PostgreSQL refuses."""
    return text.replace("\x00", "").replace("\r\n", "\n").strip()


CleanText = Annotated[str, AfterValidator(clean_text)]


class Given(Schema):
    """Body of a request. An unknown field is refused, for most often it is a slip of the pen."""

    model_config = ConfigDict(extra="forbid")


class FieldProblem(Schema):
    """Problem of one field: its place in the request, and what is wrong."""

    field: str
    problem: str
    option: str = Field("", description="The option of an action that this is about.")


class ProblemDetails(Schema):
    """A refusal of a request."""

    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = []


def describe_refusals(*statuses: int) -> dict[int, Any]:
    """Return problems with these statuses, as an OpenAPI document lists an operation's answers."""
    content = {JSON: {"schema": {"$ref": REFERENCE.format(model=ProblemDetails.__name__)}}}
    phrases = {int(one): one.phrase for one in HTTPStatus}
    return {one: {"description": phrases.get(one, "Unknown Status Code"), "content": content} for one in statuses}


def describe_problems(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document what every operation may answer besides its own answer, and the schema of that."""
    # Declared with each operation, it would be a model of nine statuses for each: seconds at every start.
    known = describe_refusals(400, 401, 403, 404, 409, 412, 413, 422, 429)
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"] |= known
    schema = ProblemDetails.model_json_schema(ref_template=REFERENCE)
    document["components"]["schemas"] |= schema.pop("$defs") | {ProblemDetails.__name__: schema}


def refuse(status: int, detail: str, errors: list[dict[str, str]] | None = None) -> HttpResponse:
    """Return an answer with a problem."""
    detail = "; ".join(f"{one['field']}: {one['problem']}" for one in errors or []) or detail
    body = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail, "errors": errors or []}
    return JsonResponse(body, status=status, content_type=JSON)


def validate_form(form: Form, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what a page's form makes of the fields of a request. Raises ValidationError, which names the wrong ones.

    `names`: what the request calls a field, where the form has another word for it.
    """
    if form.is_valid():
        return form.cleaned_data
    # A field may have several problems; the answer names it once, with all of them.
    called, errors = {NON_FIELD_ERRORS: "", **(names or {})}, []
    for field, problems in form.errors.items():
        place = ("body", *filter(None, called.get(field, field).split(".")))
        errors.append({"loc": place, "msg": " ".join(map(str, problems))})
    raise ValidationError(errors)


def handle_problems(api: NinjaAPI) -> None:
    """Answer each known error, of Quorum or of the framework, with a problem; any other one is a fault and a 500."""

    def answers(*kinds: type[Exception], status: int) -> None:
        def handle(request: HttpRequest, error: Exception) -> HttpResponse:
            return refuse(status, str(error))

        for kind in kinds:
            api.add_exception_handler(kind, handle)  # type: ignore[arg-type]

    # The errors of services with their one clear line, BadInput above all.
    answers(QuorumError, status=422)
    api.add_exception_handler(BadOption, refuse_option)  # type: ignore[arg-type]
    # The request is well formed, but somebody or something closed the pair first.
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


# A program sends no CSRF cookie: without this a POST to a wrong address would get a page about that.
@csrf_exempt
def answer_not_found(request: HttpRequest) -> HttpResponse:
    """Answer an address that no operation has with a 404 problem instead of a page."""
    return refuse(404, _("Not found."))


def refuse_body(request: HttpRequest, error: SuspiciousOperation) -> HttpResponse:
    """Answer a body that Django does not read: with too many bytes, files or fields."""
    if isinstance(error, RequestDataTooBig):
        return refuse(413, "The request is larger than this server takes; send a file instead.")
    # Django counts the files while it parses the body, before an operation can say the same.
    if isinstance(error, TooManyFilesSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        return refuse(422, _("At most %(most)s files at once; put them in a zip archive.") % {"most": most})
    return refuse(400, str(error))


def refuse_option(request: HttpRequest, error: BadOption) -> HttpResponse:
    """Answer wrong options of an action: each by its name and its place in the request."""
    errors = [
        {"field": ".".join(filter(None, ("body", option))), "problem": sentence, "option": option}
        for option, sentence in error.problems
    ]
    return refuse(422, str(error), errors)


def _refuse_race(request: HttpRequest, error: Exception) -> HttpResponse:
    # What is looked for and not found can be there a moment later: the constraints of the database have the last word.
    if isinstance(error.__cause__, UniqueViolation):
        return refuse(409, _("Someone else has just created the same. Look at what is there now."))
    if (race := explain_race(error)) is None:
        raise error
    if not isinstance(error, Deleted):
        # It may be a fault all the same: the log shows where.
        logger.warning("a race was lost", exc_info=error)
    return refuse(*race)


def _refuse_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error, AuthenticationError):
        answer = refuse(401, _("Send a valid access token: “Authorization: Bearer quorum_…”."))
        # RFC 6750, section 3: a 401 names the scheme that it expects.
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    answer = refuse(error.status_code, str(error))
    if isinstance(error, Throttled) and error.wait:
        answer["Retry-After"] = str(error.wait)
    return answer


def _refuse_validation(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name each field by its place in the request, as `body.grade`."""
    errors = []
    for wrong in error.errors:
        first, *places = map(str, wrong.get("loc", ())) or ("",)
        # ninja names the parameter that holds the body, too.
        places = places[1:] if first == "body" and places[:1] == ["body"] else places
        option = places[0] if first == "body" and places else ""
        # A problem without a message is shown whole rather than lost.
        problem = say_problem(wrong) if "type" in wrong else str(wrong.get("msg", wrong))
        errors.append({"field": ".".join([first, *places]), "problem": problem, "option": option})
    return refuse(422, "The request is not valid.", errors)
