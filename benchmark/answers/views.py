"""Pages of answers: an evaluation with its progress and results, the form that starts one, and single answers."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from benchmark.answers import figures, listing, results, suites
from benchmark.answers import tables as downloads
from benchmark.answers.evaluations import ANSWERS, answered_queries, runs_in
from benchmark.answers.results import VersionPair
from benchmark.answers.tables import alignment_table
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.report.systems import chosen
from benchmark.suites.groups import collections_of
from benchmark.suites.views import get_suite
from charts.downloads import DownloadTable
from corpus.access import AccessScope, AccessSiteScope, action
from corpus.chart_downloads import send_file
from corpus.errors import BadInput
from corpus.models import Query
from judges.model_jobs.pages import form_page, job_page

SHOWN = 30


@action("admin")
@require_GET
def answers(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the newest evaluation of answers, or what is needed to start one."""
    rows = AnswerEvaluation.objects.filter(collection=scope.collection).select_related("collection")
    evaluation_row = rows.order_by("-pk").first()
    if evaluation_row is None:
        form = {"lacks": ANSWERS.lacks(scope.collection)}
        context = {"scope": scope, "form": form, "answerable": bool(answered_queries(scope.collection))}
        return render(request, "benchmark/answers/empty.html", context)
    return _render_evaluation(request, scope, evaluation_row)


@action("admin")
@require_GET
def answer_evaluation(request: HttpRequest, scope: AccessScope, evaluation: int) -> HttpResponse:
    """Show one evaluation, which HTMX polls while it is running."""
    return _render_evaluation(request, scope, ANSWERS.find(scope.collection, evaluation))


def _asked_versions(request: HttpRequest, scope: AccessScope) -> VersionPair:
    """Return the versions in the address, or else the default ones. Raises BadInput."""
    numbers = [int(text) if (text := request.GET.get(name, "")[:9]).isdecimal() else None for name in figures.VERSIONS]
    return results.choose_versions(scope.collection, *numbers)


def _render_evaluation(request: HttpRequest, scope: AccessScope, evaluation_row: AnswerEvaluation) -> HttpResponse:
    context: dict[str, Any] = {
        "evaluation": evaluation_row,
        "versions": chosen.versions_of(scope.collection),
        "others": AnswerEvaluation.objects.filter(collection=scope.collection)
        .exclude(pk=evaluation_row.pk)
        .order_by("-pk")[:SHOWN],
        "cost": results.cost_of(evaluation_row),
        "result": None,
    }
    files: dict[str, Any] = {}
    try:
        pair = _asked_versions(request, scope)
    except BadInput as error:
        context["problem"] = str(error)
    else:
        result = results.load_result(evaluation_row, pair)
        # The tables of an evaluation: RAGAlign, and Hit@k of each system by both versions with its ranks.
        label = f"Hit@{result['k']}"
        versions = _("%(measure)s, original"), _("%(measure)s, filled")
        header = (_("system"), *(name % {"measure": label} for name in versions), _("rank before"), _("rank after"))
        columns = ("name", "before", "after", "rank_before", "rank_after")
        rows = tuple(tuple(system[name] for name in columns) for system in result["systems"])
        files = {
            "charts": figures.draw_versions(result),
            "tables": [alignment_table(result), DownloadTable("rag-retrieval", _("Retrieval by system"), header, rows)],
        }
        context["reasons"] = [
            {"system": cell["system"], "generator": cell["generator"], "when": when, "why": reason}
            for cell in result["cells"]
            for when, reason in cell["graded"]["reasons"].items()
            if reason
        ]
        context["malformed"] = [cell for cell in result["cells"] if cell["malformed"]]
        context |= {"result": result, "charts": files["charts"], "asked": _name_versions(pair)}
    names = "benchmark/answers/evaluation.html", "benchmark/answers/_evaluation.html"
    return job_page(request, scope, evaluation_row, *names, context, **files)


def _name_versions(pair: VersionPair) -> str:
    """Return the query string that selects these versions."""
    return urlencode({"before": pair.before.number} | ({"after": pair.after.number} if pair.after else {}))


@action("admin")
@require_GET
def listed_answers(request: HttpRequest, scope: AccessScope, evaluation: int) -> HttpResponse:
    """List the answers of one run and generator by query; of the first ones by default."""
    evaluation_row = ANSWERS.find(scope.collection, evaluation)
    runs, generators = runs_in(evaluation_row), evaluation_row.options["generators"]
    requested = {name: request.GET.get(name, "") for name in ("system", "generator", "show", "page")}
    run = next((run for run in runs if run.name == requested["system"]), runs[0])
    generator = requested["generator"] if requested["generator"] in generators else generators[0]
    show = requested["show"] if requested["show"] in listing.FILTERS else listing.FILTERS[0]
    page = max(int(requested["page"][:6]), 1) if requested["page"][:6].isdecimal() else 1
    pair = _versions_or_404(request, scope)
    answer_page = listing.list_answers(evaluation_row, pair, run=run, generator=generator, shown=show, page_number=page)
    selection = {"run": run, "runs": runs, "generator": generator, "generators": generators, "show": show, "pair": pair}
    query_string = urlencode({"system": run.name, "generator": generator, "show": show}) + "&" + _name_versions(pair)
    context = {
        "scope": scope,
        "evaluation": evaluation_row,
        "listed": {"page": answer_page, **selection, "asked": query_string},
    }
    return render(request, "benchmark/answers/listed.html", context)


def _versions_or_404(request: HttpRequest, scope: AccessScope) -> VersionPair:
    try:
        return _asked_versions(request, scope)
    except BadInput as error:
        raise Http404(str(error)) from None


@action("admin")
@require_http_methods(["GET", "POST"])
def start_answers(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the form of an evaluation and its estimated calls and cost; then queue it."""
    return form_page(request, scope, ANSWERS)


@action("admin")
@require_GET
def judged_answer(request: HttpRequest, scope: AccessScope, evaluation: int, query: int) -> HttpResponse:
    """Show all answers to a query, one of them with its contexts and its verdict."""
    evaluation_row = ANSWERS.find(scope.collection, evaluation)
    query_row = get_object_or_404(Query, pk=query, collection=scope.collection)
    cells = listing.list_answers_to_query(evaluation_row, query_row)
    selected_cell = request.GET.get("system", ""), request.GET.get("generator", "")
    selected_cells = [cell for cell in cells if (cell.run.name, cell.generator) == selected_cell]
    shown: GeneratedAnswer | None = next((cell.answer for cell in [*selected_cells, *cells] if cell.answer), None)
    context: dict[str, Any] = {
        "scope": scope,
        "evaluation": evaluation_row,
        "query": query_row,
        "cells": cells,
        "shown": shown,
    }
    if shown is not None:
        answer = GeneratedAnswer.objects.select_related("run", "query", "evaluation__collection").get(pk=shown.pk)
        context |= {"shown": answer, "contexts": listing.list_contexts(answer, _versions_or_404(request, scope))}
    return render(request, "benchmark/answers/answer.html", context)


@action("site")
@require_GET
def suite_answers(request: HttpRequest, scope: AccessSiteScope, suite: int) -> HttpResponse:
    """Show RAGAlign of each member's newest evaluation, and the unweighted mean."""
    suite_row = get_suite(scope, suite)
    members = collections_of(suite_row)
    by_member = [suites.member_answers(collection, chosen.K) for collection in members]
    lines, sizes = suites.suite_lines(by_member), suites.count_queries(by_member)
    files = downloads.suite_tables(suite_row.name, chosen.K, [collection.name for collection in members], lines)
    if (file := send_file(request, [], files)) is not None:
        return file
    context: dict[str, Any] = {"scope": scope, "suite": suite_row, "members": members, "k": chosen.K}
    context |= {"columns": list(zip(members, sizes, strict=True)), "queries": sum(size or 0 for size in sizes)}
    graded = [{**line, **line["graded"]} for line in lines]
    context["parts"] = list(zip(files, (lines, graded), strict=True)) if lines else []
    return render(request, "benchmark/answers/suite.html", context)
