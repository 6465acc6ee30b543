"""The study of reference answers: its progress and results, writing an answer, rating two."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchmark.agents import study
from benchmark.agents.study_forms import SCALE, RatingForm, ReferenceStudyForm, WritingForm
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
    """Show the newest study's progress; to admins also its results, earlier studies, and the form for the next one."""
    return _show_study(request, scope, None)


def _show_study(request: HttpRequest, scope: AccessScope, form: ReferenceStudyForm | None) -> HttpResponse:
    rows = study.studies_of(scope.collection)
    number = request.GET.get("study", "")
    by_number = scope.may_admin and number.isdecimal() and len(number) < 18
    study_row = get_object_or_404(rows, pk=int(number)) if by_number else rows.first()
    context: dict[str, Any] = {"study": study_row}
    tables = []
    if study_row is not None:
        context["progress"] = study.count_progress(study_row)
    if scope.may_admin:
        candidates = len(study.find_candidates(scope.collection)[1])
        context |= {
            "earlier": rows,
            "candidates": candidates,
            "form": form or ReferenceStudyForm(candidates=candidates),
        }
        context["is_open"] = study.open_study(scope.collection) is not None
        if study_row is not None:
            lines = measure_study(study_row)
            tables.append(study_table(study_row, lines))
            context |= {"lines": lines, "names": criterion_names(), "files_query": f"study={study_row.pk}"}
    status = 422 if form is not None else 200
    return answer_page(request, scope, "benchmark/agents/study.html", context, tables=tables, status=status)


@action("admin")
@require_POST
def control_study(request: HttpRequest, scope: AccessScope, act: str) -> HttpResponse:
    """Start or close the study."""
    if act == "start":
        form = ReferenceStudyForm(request.POST, candidates=len(study.find_candidates(scope.collection)[1]))
        if form.is_valid():
            try:
                with transaction.atomic():
                    new_study = study.start_study(scope.collection, **form.cleaned_data, by=scope.user.username)
                    record_act(scope, "references.study", study=new_study.pk, what="start", **form.cleaned_data)
                return redirect(HOME, scope.collection.name)
            except BadInput as error:
                form.add_error("queries", str(error))
        return _show_study(request, scope, form)
    if act != "close":
        raise Http404(_("Unknown action."))
    with transaction.atomic():
        closed_study = study.close_study(scope.collection)
        if closed_study is not None:
            record_act(scope, "references.study", study=closed_study.pk, what="close")
    if closed_study is None:
        messages.error(request, _("No changes made: no study is open."))
    return redirect(HOME, scope.collection.name)


def _find_open(request: HttpRequest, scope: AccessScope) -> ReferenceStudy | None:
    open_study = study.open_study(scope.collection)
    if open_study is None and request.method == "POST":
        messages.error(request, _("No changes made: no study is open."))
    return open_study


@action("judge")
@require_http_methods(["GET", "POST"])
def write_study_answer(request: HttpRequest, scope: AccessJudgeScope) -> HttpResponse:
    """Show the person's reserved query with its passages; reserve or release a query, or store the answer."""
    open_study, writer = _find_open(request, scope), scope.member.assessor
    if open_study is None:
        return redirect(HOME, scope.collection.name)
    act = request.POST.get("act")
    form = WritingForm(request.POST if act == "write" else None)
    try:
        if act == "reserve" and study.reserve_query(open_study, writer) is None:
            messages.error(request, _("Every query has an answer or is reserved for another person."))
        elif act == "release":
            study.release_query(open_study, writer)
        elif form.is_valid():
            with transaction.atomic():
                answer = study.write_answer(open_study, writer, form.cleaned_data["answer"])
                query = answer.reference.query.external_id
                record_act(scope, "references.answered", study=open_study.pk, query=query)
            messages.success(request, _("Answer saved."))
        if not form.is_bound or form.is_valid():
            return redirect("write_study_answer", scope.collection.name) if act else _show_writing(request, scope, form)
    except BadInput as error:
        form.add_error("answer", str(error)) if form.is_bound else messages.error(request, str(error))
    return _show_writing(request, scope, form)


def _show_writing(request: HttpRequest, scope: AccessJudgeScope, form: WritingForm) -> HttpResponse:
    open_study = study.open_study(scope.collection)
    answer = study.reserved_for(open_study, scope.member.assessor) if open_study else None
    context: dict[str, Any] = {"scope": scope, "study": open_study, "mine": answer, "form": form}
    if answer is not None:
        context["aspects"], context["passages"] = study.passages_of(answer)
    elif open_study is not None:
        context["free"] = study.count_free(open_study)
    return render(request, "benchmark/agents/study_write.html", context, status=422 if form.is_bound else 200)


@action("judge")
@require_http_methods(["GET", "POST"])
def rate_study_answers(request: HttpRequest, scope: AccessJudgeScope) -> HttpResponse:
    """Show two answers to a query without their sources; store the ratings, or withdraw the last ones."""
    open_study, rater = _find_open(request, scope), scope.member.assessor
    if open_study is None:
        return redirect(HOME, scope.collection.name)
    form = RatingForm(request.POST if request.method == "POST" and "undo" not in request.POST else None)
    try:
        with transaction.atomic():
            if "undo" in request.POST and (rating := study.undo_rating(open_study, rater)) is not None:
                query = rating.answer.reference.query.external_id
                record_act(scope, "references.rated", study=open_study.pk, query=query, what="undo")
            if form.is_valid():
                rating = study.rate_answers(open_study, rater, form.cleaned_data["query"], *form.grades)
                query = rating.answer.reference.query.external_id
                record_act(scope, "references.rated", study=open_study.pk, query=query)
            if "undo" in request.POST or form.is_valid():
                return redirect("rate_study_answers", scope.collection.name)
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("rate_study_answers", scope.collection.name)
    # A form with errors shows the same answer again.
    unrated = study.answers_to_rate(open_study, rater)
    answer_key = str(form.data.get("query", "")) if form.is_bound else ""
    shown_again = (
        unrated.filter(pk=int(answer_key)).first() if answer_key.isdecimal() and len(answer_key) < 18 else None
    )
    answer = shown_again or unrated.first()
    context = {
        "scope": scope,
        "answer": answer,
        "count": unrated.count(),
        "last": study.last_rating(open_study, rater),
        "form": form,
        "parts": _rating_parts(open_study, answer, form, scope) if answer else [],
        "aspects": study.passages_of(answer)[0] if answer else [],
    }
    return render(request, "benchmark/agents/study_rate.html", context, status=422 if form.is_bound else 200)


def _rating_parts(
    study_row: ReferenceStudy, answer: StudyAnswer, form: RatingForm, scope: AccessJudgeScope
) -> list[dict[str, Any]]:
    """Return the two answers in the rater's order, each with its two scales."""
    texts = study.shown_answers(study_row, answer, scope.member.assessor)
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
