"""Answers: the newest evaluation, its start with an estimate, progress, cancel and resume, and single answers."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_http_methods

from benchmark.answers import figures, listing, results, suites
from benchmark.answers import tables as downloads
from benchmark.answers.evaluations import ANSWERS, answered_queries, runs_in
from benchmark.answers.results import VersionPair
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.suites.groups import collections_of
from benchmark.suites.views import get_suite
from benchmark.systems import chosen
from corpus.access import AccessScope, AccessSiteScope, action
from corpus.chart_downloads import send_file
from corpus.errors import BadInput
from corpus.models import Query
from judges.model_jobs.pages import form_page, job_page

SHOWN = 30


@action("admin")
@require_GET
def answers(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """The newest evaluation of answers, or what it takes to have one."""
    rows = AnswerEvaluation.objects.filter(collection=scope.collection).select_related("collection")
    found = rows.order_by("-pk").first()
    if found is None:
        form = {"lacks": ANSWERS.lacks(scope.collection)}
        context = {"scope": scope, "form": form, "answerable": bool(answered_queries(scope.collection))}
        return render(request, "benchmark/answers/empty.html", context)
    return _render_evaluation(request, scope, found)


@action("admin")
@require_GET
def answer_evaluation(request: HttpRequest, scope: AccessScope, evaluation: int) -> HttpResponse:
    """Show one evaluation; HTMX polls it while it is worked on."""
    return _render_evaluation(request, scope, ANSWERS.find(scope.collection, evaluation))


def _asked_versions(request: HttpRequest, scope: AccessScope) -> VersionPair:
    """The reader's versions, else the original and the newest filled one. Raises BadInput."""
    numbers = [int(text) if (text := request.GET.get(name, "")[:9]).isdecimal() else None for name in figures.VERSIONS]
    return results.choose_versions(scope.collection, *numbers)


def _render_evaluation(request: HttpRequest, scope: AccessScope, found: AnswerEvaluation) -> HttpResponse:
    context: dict[str, Any] = {
        "evaluation": found,
        "versions": chosen.versions_of(scope.collection),
        "others": AnswerEvaluation.objects.filter(collection=scope.collection)
        .exclude(pk=found.pk)
        .order_by("-pk")[:SHOWN],
        "cost": results.cost_of(found),
        "result": None,
    }
    files: dict[str, Any] = {}
    try:
        pair = _asked_versions(request, scope)
    except BadInput as error:
        context["problem"] = str(error)
    else:
        result = results.load_result(found, pair)
        files = {"charts": figures.draw_versions(result), "tables": downloads.result_tables(result)}
        context["reasons"] = [
            {"system": cell["system"], "generator": cell["generator"], "when": when, "why": why}
            for cell in result["cells"]
            for when, why in cell["graded"]["reasons"].items()
            if why
        ]
        context["malformed"] = [cell for cell in result["cells"] if cell["malformed"]]
        context |= {"result": result, "charts": files["charts"], "asked": _name_versions(pair)}
    names = "benchmark/answers/evaluation.html", "benchmark/answers/_evaluation.html"
    return job_page(request, scope, found, *names, context, **files)


def _name_versions(pair: VersionPair) -> str:
    """The part of an address that asks for these versions."""
    return urlencode({"before": pair.before.number} | ({"after": pair.after.number} if pair.after else {}))


@action("admin")
@require_GET
def listed_answers(request: HttpRequest, scope: AccessScope, evaluation: int) -> HttpResponse:
    """The answers of one run and generator by query; the first ones unless others are asked for."""
    found = ANSWERS.find(scope.collection, evaluation)
    runs, generators = runs_in(found), found.options["generators"]
    asked = {name: request.GET.get(name, "") for name in ("system", "generator", "show", "page")}
    run = next((one for one in runs if one.name == asked["system"]), runs[0])
    generator = asked["generator"] if asked["generator"] in generators else generators[0]
    show = asked["show"] if asked["show"] in listing.SHOWN else listing.SHOWN[0]
    page = max(int(asked["page"][:6]), 1) if asked["page"][:6].isdecimal() else 1
    pair = _versions_or_404(request, scope)
    rows = listing.list_answers(found, pair, run=run, generator=generator, show=show, page=page)
    told = {"run": run, "runs": runs, "generator": generator, "generators": generators, "show": show, "pair": pair}
    again = urlencode({"system": run.name, "generator": generator, "show": show}) + "&" + _name_versions(pair)
    context = {"scope": scope, "evaluation": found, "listed": {**rows, **told, "asked": again}}
    return render(request, "benchmark/answers/listed.html", context)


def _versions_or_404(request: HttpRequest, scope: AccessScope) -> VersionPair:
    try:
        return _asked_versions(request, scope)
    except BadInput as error:
        raise Http404(str(error)) from None


@action("admin")
@require_http_methods(["GET", "POST"])
def start_answers(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Start an evaluation: show the form, then its calls and cost, then store it for a worker."""
    return form_page(request, scope, ANSWERS)


@action("admin")
@require_GET
def judged_answer(request: HttpRequest, scope: AccessScope, evaluation: int, query: int) -> HttpResponse:
    """Show each generator's answer to a query, and one with its contexts and its verdict."""
    found = ANSWERS.find(scope.collection, evaluation)
    asked = get_object_or_404(Query, pk=query, collection=scope.collection)
    rows = listing.side_by_side(found, asked)
    wanted = request.GET.get("system", ""), request.GET.get("generator", "")
    named = [row for row in rows if (row["run"].name, row["generator"]) == wanted]
    shown: GeneratedAnswer | None = next((row["answer"] for row in [*named, *rows] if row["answer"] is not None), None)
    context: dict[str, Any] = {"scope": scope, "evaluation": found, "query": asked, "rows": rows, "shown": shown}
    if shown is not None:
        whole = GeneratedAnswer.objects.select_related("run", "query", "evaluation__collection").get(pk=shown.pk)
        context |= {"shown": whole, "contexts": listing.list_contexts(whole, _versions_or_404(request, scope))}
    return render(request, "benchmark/answers/answer.html", context)


@action("site")
@require_GET
def suite_answers(request: HttpRequest, scope: AccessSiteScope, suite: int) -> HttpResponse:
    """RAGAlign of each member's newest evaluation, and the unweighted mean."""
    found = get_suite(scope, suite)
    members = collections_of(found)
    lines = suites.suite_lines([suites.member_answers(one, chosen.K) for one in members])
    files = downloads.suite_tables(found.name, chosen.K, [one.name for one in members], lines)
    if (file := send_file(request, [], files)) is not None:
        return file
    context: dict[str, Any] = {"scope": scope, "suite": found, "members": members, "k": chosen.K}
    graded = [{**line, **line["graded"]} for line in lines]
    context["parts"] = list(zip(files, (lines, graded), strict=True)) if lines else []
    return render(request, "benchmark/answers/suite.html", context)
