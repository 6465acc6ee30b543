"""The study of reference answers: its progress and results, writing an answer, rating two."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchmark.agents import study
from benchmark.agents.study_forms import SCALE, RatingForm, StudyForm, WritingForm
from benchmark.agents.study_results import criterion_names, measure_study, study_table
from benchmark.models import ReferenceStudy, StudyAnswer
from corpus.access import AccessJudgeScope, AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput

HOME = "reference_study"


@action("member")
@require_GET
def reference_study(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the newest study's progress; to admins results, earlier ones, the next form."""
    return _show_study(request, scope, None)


def _show_study(request: HttpRequest, scope: AccessScope, form: StudyForm | None) -> HttpResponse:
    rows = study.studies_of(scope.collection)
    asked = request.GET.get("study", "")
    by_number = scope.may_admin and asked.isdecimal() and len(asked) < 18
    found = get_object_or_404(rows, pk=int(asked)) if by_number else rows.first()
    context: dict[str, Any] = {"study": found}
    shown = []
    if found is not None:
        context["progress"] = study.count_progress(found)
    if scope.may_admin:
        candidates = len(study.find_candidates(scope.collection)[1])
        context |= {"earlier": rows, "candidates": candidates, "form": form or StudyForm(candidates=candidates)}
        context["is_open"] = study.open_study(scope.collection) is not None
        if found is not None:
            lines = measure_study(found)
            shown.append(study_table(found, lines))
            context |= {"lines": lines, "names": criterion_names(), "files_query": f"study={found.pk}"}
    status = 422 if form is not None else 200
    return answer_page(request, scope, "benchmark/agents/study.html", context, tables=shown, status=status)


@action("admin")
@require_POST
def control_study(request: HttpRequest, scope: AccessScope, act: str) -> HttpResponse:
    """Start or close the study."""
    if act == "start":
        return _start_study(request, scope)
    if act != "close":
        raise Http404(_("Unknown action."))
    with transaction.atomic():
        closed = study.close_study(scope.collection)
        if closed is not None:
            record_act(scope, "references.study", study=closed.pk, what="close")
    if closed is None:
        messages.error(request, _("No changes made: no study is open."))
    return redirect(HOME, scope.collection.name)


def _start_study(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    form = StudyForm(request.POST, candidates=len(study.find_candidates(scope.collection)[1]))
    if form.is_valid():
        try:
            with transaction.atomic():
                made = study.start_study(scope.collection, **form.cleaned_data, by=scope.user.username)
                record_act(scope, "references.study", study=made.pk, what="start", **form.cleaned_data)
            return redirect(HOME, scope.collection.name)
        except BadInput as error:
            form.add_error("queries", str(error))
    return _show_study(request, scope, form)


def _find_open(request: HttpRequest, scope: AccessScope) -> ReferenceStudy | None:
    found = study.open_study(scope.collection)
    if found is None and request.method == "POST":
        messages.error(request, _("No changes made: no study is open."))
    return found


@action("judge")
@require_http_methods(["GET", "POST"])
def write_study_answer(request: HttpRequest, scope: AccessJudgeScope) -> HttpResponse:
    """The person's reserved query, with passages; reserve, release, or store the answer."""
    found, writer = _find_open(request, scope), scope.member.assessor
    if found is None:
        return redirect(HOME, scope.collection.name)
    act = request.POST.get("act")
    form = WritingForm(request.POST if act == "write" else None)
    try:
        if act == "reserve" and study.reserve_query(found, writer) is None:
            messages.error(request, _("Every query has an answer or is reserved for another person."))
        elif act == "release":
            study.release_query(found, writer)
        elif form.is_valid():
            with transaction.atomic():
                made = study.write_answer(found, writer, form.cleaned_data["answer"])
                record_act(scope, "references.answered", study=found.pk, query=made.reference.query.external_id)
            messages.success(request, _("Answer saved."))
        if not form.is_bound or form.is_valid():
            return redirect("write_study_answer", scope.collection.name) if act else _show_writing(request, scope, form)
    except BadInput as error:
        form.add_error("answer", str(error)) if form.is_bound else messages.error(request, str(error))
    return _show_writing(request, scope, form)


def _show_writing(request: HttpRequest, scope: AccessJudgeScope, form: WritingForm) -> HttpResponse:
    found = study.open_study(scope.collection)
    mine = study.reserved_for(found, scope.member.assessor) if found else None
    context: dict[str, Any] = {"scope": scope, "study": found, "mine": mine, "form": form}
    if mine is not None:
        context["aspects"], context["passages"] = study.passages_of(mine)
    elif found is not None:
        context["free"] = study.count_free(found)
    return render(request, "benchmark/agents/study_write.html", context, status=422 if form.is_bound else 200)


@action("judge")
@require_http_methods(["GET", "POST"])
def rate_study_answers(request: HttpRequest, scope: AccessJudgeScope) -> HttpResponse:
    """Show both answers to a query unnamed, shuffled; store the ratings, or undo the last ones."""
    found, rater = _find_open(request, scope), scope.member.assessor
    if found is None:
        return redirect(HOME, scope.collection.name)
    form = RatingForm(request.POST if request.method == "POST" and "undo" not in request.POST else None)
    try:
        with transaction.atomic():
            if "undo" in request.POST and (undone := study.undo_rating(found, rater)) is not None:
                query = undone.answer.reference.query.external_id
                record_act(scope, "references.rated", study=found.pk, query=query, what="undo")
            if form.is_valid():
                made = study.rate_answers(found, rater, form.cleaned_data["query"], *form.grades)
                record_act(scope, "references.rated", study=found.pk, query=made.answer.reference.query.external_id)
            if "undo" in request.POST or form.is_valid():
                return redirect("rate_study_answers", scope.collection.name)
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("rate_study_answers", scope.collection.name)
    return _show_rating(request, scope, found, form)


def _show_rating(
    request: HttpRequest, scope: AccessJudgeScope, found: ReferenceStudy, form: RatingForm
) -> HttpResponse:
    rater = scope.member.assessor
    waiting = study.answers_to_rate(found, rater)
    asked = str(form.data.get("query", "")) if form.is_bound else ""
    again = waiting.filter(pk=int(asked)).first() if asked.isdecimal() and len(asked) < 18 else None
    answer = again or waiting.first()
    context = {
        "scope": scope,
        "answer": answer,
        "count": waiting.count(),
        "last": study.last_rating(found, rater),
        "form": form,
        "parts": _rating_parts(found, answer, form, scope) if answer else [],
        "aspects": study.passages_of(answer)[0] if answer else [],
    }
    return render(request, "benchmark/agents/study_rate.html", context, status=422 if form.is_bound else 200)


def _rating_parts(
    found: ReferenceStudy, answer: StudyAnswer, form: RatingForm, scope: AccessJudgeScope
) -> list[dict[str, Any]]:
    """The two answers in the rater's order, each with its two scales."""
    texts = study.shown_answers(found, answer, scope.member.assessor)
    return [
        {
            "text": text,
            "title": title,
            "scales": [
                {
                    "name": f"{key}_{criterion}",
                    "label": form.fields[f"{key}_{criterion}"].label,
                    "choices": SCALE,
                    "chosen": str(form.data.get(f"{key}_{criterion}", "")) if form.is_bound else "",
                    "errors": form.errors.get(f"{key}_{criterion}") if form.is_bound else None,
                }
                for criterion in ("completeness", "quality")
            ],
        }
        for key, title, text in zip(("first", "second"), (_("First answer"), _("Second answer")), texts, strict=True)
    ]
