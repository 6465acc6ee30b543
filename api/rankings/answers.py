"""Evaluations of answers: their cost, their start, their figures, single answers, their end."""

from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import validate_form
from api.routes.model_jobs import (
    JobAct,
    JobEstimateOut,
    LimitsIn,
    ModelJobOut,
    control_model_job,
    show_estimate,
    show_model_job,
)
from api.routes.pages import Cursor, Limit, Page, page_of
from benchmark.answers import evaluations, results
from benchmark.answers.forms import AnswersForm
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.systems import chosen
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from judges.campaigns.selectors import with_campaign_number

router = Router(tags=["answers"])
MANAGE = AccessToken.TokenScope.MANAGE


class AnswersIn(LimitsIn):
    """Models that answer from the documents of runs, and the judge who says whether the answers are right."""

    runs: list[str] = Field([], max_length=1000, description="Their names; none: all that are ready.")
    generators: list[str] = Field(min_length=1, max_length=100, description="Models.")
    judge: str = Field(max_length=100, description="Compares answers with the reference answers.")
    k: int = Field(chosen.K, ge=1, le=evaluations.DEEPEST, description="Documents that a generator sees.")
    contexts: Literal["document", "evidence"] = "document"


class AnswerEvaluationOut(ModelJobOut):
    """An evaluation of answers."""

    runs: list[int]
    generators: list[str]
    judge: str
    k: int
    contexts: str


class AnswerFiguresOut(Schema):
    """Figures of the answers by two versions of the qrels: docs/answers.md."""

    document: dict[str, Any]


class GeneratedAnswerOut(Schema):
    """An answer. `correct` null: the judge gave no verdict."""

    number: int
    query: str
    run: str
    generator: str
    answer: str
    correct: bool | None
    is_exact_match: bool
    problem: str


@router.get("/collections/{slug:name}/answers", auth=may("admin"), response=Page[AnswerEvaluationOut])
def list_evaluations(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the evaluations of answers, the oldest first."""
    return page_of(_evaluations(request), after, limit, _show_evaluation)


@router.post("/collections/{slug:name}/answers/estimate", auth=may("admin"), response=JobEstimateOut)
def estimate_answers(request: HttpRequest, name: str, body: AnswersIn) -> Any:
    """Estimate the calls and cost of an evaluation of answers; nothing starts."""
    collection = scope_of(request).collection
    return show_estimate(evaluations.estimate_cost(collection, _options_of(collection, body)))


@router.post("/collections/{slug:name}/answers", auth=may("admin", MANAGE), response={201: AnswerEvaluationOut})
@decorate_view(once)
def start_answers(request: HttpRequest, name: str, body: AnswersIn) -> Any:
    """Start an evaluation of answers, or go on with the same one; a worker does the work."""
    scope = scope_of(request)
    options = _options_of(scope.collection, body)
    with transaction.atomic():
        found = evaluations.start_or_join(scope.collection, options, scope.user.username)
        record(scope, "answers.started", evaluation=found.number, k=options["k"], generators=options["generators"])
    return Status(201, _show_evaluation(_find_evaluation(request, found.number)))


def _options_of(collection: Collection, body: AnswersIn) -> dict[str, Any]:
    """Return the checked options, as the page's form gives them. Raises ValidationError and BadInput."""
    # The form wants one run at least; a request that names none means all that are ready.
    runs = body.runs or [run.name for run in chosen.ready_runs(collection)]
    form = AnswersForm({**body.dict(), "systems": runs}, collection=collection)
    validate_form(form, {"systems": "runs"})
    return form.options()


@router.get("/collections/{slug:name}/answers/{number}", auth=may("admin"), response=AnswerEvaluationOut)
def read_evaluation(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far an evaluation of answers is."""
    return _show_evaluation(_find_evaluation(request, number))


@router.get(
    "/collections/{slug:name}/answers/{number}/figures",
    auth=may("admin"),
    response=AnswerFiguresOut,
)
def read_answer_figures(
    request: HttpRequest, name: str, number: int, before: int | None = None, after: int | None = None
) -> Any:
    """Read what the answers come to by two versions of the qrels; none named: the original and the newest filled."""
    found = _find_evaluation(request, number)
    return {"document": results.load_result(found, results.choose_versions(found.collection, before, after))}


@router.get(
    "/collections/{slug:name}/answers/{number}/queries",
    auth=may("admin"),
    response=Page[GeneratedAnswerOut],
)
def list_answers(request: HttpRequest, name: str, number: int, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the answers of an evaluation with their verdicts."""
    # The evidence of an answer may be long, and no field shows it.
    rows = GeneratedAnswer.objects.filter(evaluation=_find_evaluation(request, number)).defer("evidence")
    return page_of(rows.select_related("query", "run"), after, limit, _show_answer)


@router.post(
    "/collections/{slug:name}/answers/{number}/{act}",
    auth=may("admin", MANAGE),
    response=AnswerEvaluationOut,
)
@decorate_view(once)
def control_answers(request: HttpRequest, name: str, number: int, act: JobAct, body: LimitsIn | None = None) -> Any:
    """Cancel an evaluation of answers, or go on after a cancellation, a failure, or with queries that came later."""
    found = _find_evaluation(request, number)
    control_model_job(
        request,
        found,
        act,
        body,
        acts={"cancel": evaluations.cancel, "go-on": evaluations.go_on},
        set_limits=evaluations.set_limits,
        audit="answers.control",
        evaluation=found.number,
    )
    return _show_evaluation(found)


def _evaluations(request: HttpRequest) -> Any:
    rows = AnswerEvaluation.objects.select_related("collection").filter(collection=scope_of(request).collection)
    return with_campaign_number(rows)


def _find_evaluation(request: HttpRequest, number: int) -> AnswerEvaluation:
    collection, missing = scope_of(request).collection, _("Evaluation of answers not found.")
    found: AnswerEvaluation = numbered_or_404(_evaluations(request), collection, number, missing)
    return found


def _show_evaluation(row: AnswerEvaluation) -> dict[str, Any]:
    shown = {name: row.options[name] for name in ("runs", "generators", "judge", "k", "contexts")}
    return {**show_model_job(row), **shown}


def _show_answer(row: GeneratedAnswer) -> dict[str, Any]:
    shown = ("generator", "answer", "correct", "is_exact_match", "problem")
    named = {"number": row.pk, "query": row.query.external_id, "run": row.run.name}
    return {**named, **{name: getattr(row, name) for name in shown}}
