"""Pages of agreement: all assessors two by two, two of them closely, over time, and annotator by annotator."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from annotation import pairs as listing
from annotation.agreement import page, trends, two
from annotation.agreement.aggregates import second
from annotation.agreement.report import Report, agreement_report, mixed_prompts
from annotation.assessments import known_assessors
from annotation.permissions import Scope, action
from annotation.trust.statistics import is_stale, standing
from corpus.cells import csv_line
from corpus.charting import download
from corpus.errors import BadInput
from judges.models import Campaign


@action("admin")
@require_GET
def agreement(request: HttpRequest, scope: Scope) -> HttpResponse:
    """How far the chosen assessors agree, with intervals, as numbers and as a heat map."""
    known = known_assessors(scope.collection)
    asked = page.read(request.GET, scope.collection, known)
    report = _report(scope, asked)
    if file := download(request, [page.picture(report, asked)]):
        return file
    context = {
        "scope": scope,
        "section": "agreement",
        "asked": asked,
        "groups": page.groups(known),
        "measures": page.MEASURES,
        "populations": page.POPULATIONS,
        "report": report,
        "summary": page.summary(report, asked),
        "mixed": mixed_prompts(scope.collection),
        "overall": page.overall(report, two_grades=scope.collection.grades == 1 or asked.binarize is not None),
        "matrix": page.matrix(report, asked),
        "second": second(report),
        "majority": list(zip(report.assessors, report.measures.majority, strict=True)),
    }
    return render(request, "reports/agreement.html", context)


@action("admin")
@require_GET
def agreement_csv(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The same values as a table to download."""
    asked = page.read(request.GET, scope.collection, known_assessors(scope.collection))
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{scope.collection.name}-agreement.csv"'
    response.writelines(map(csv_line, [page.CSV_HEADER, *page.csv_rows(_report(scope, asked))]))
    return response


def _report(scope: Scope, asked: page.Asked) -> Report:
    return agreement_report(
        scope.collection,
        asked.chosen,
        binarize=asked.binarize,
        bootstrap=page.RESAMPLES,
        population=asked.population,
    )


@action("admin")
@require_GET
def two_assessors(request: HttpRequest, scope: Scope) -> HttpResponse:
    """A cell of the matrix opened: the cross table of two assessors, and the pairs behind the cell that was asked."""
    filters = listing.Filters.read(request.GET)
    if not (filters.a and filters.b):
        return redirect("agreement", scope.collection.name)
    campaign = Campaign.judging.filter(collection=scope.collection).order_by("-pk").first()
    after, before = (_key(request.GET.get(name, "")) for name in ("after", "before"))
    try:
        found = two.compare(scope.collection, filters)
        rows = listing.page(scope.collection, filters, campaign=campaign, after=after, before=before)
    except BadInput as error:
        raise Http404(str(error)) from error
    if file := download(request, [found.chart]):
        return file
    context = {"scope": scope, "section": "agreement", "two": found, "filters": filters, "page": rows}
    return render(request, "reports/two.html", {**context, "campaign": campaign})


def _key(text: str) -> int:
    """The key of a page: the id of a pair; 0 where there is none."""
    return int(text) if text.isdecimal() and len(text) <= 18 else 0


@action("admin")
@require_GET
def over_time(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Agreement of judges and of people by day or week."""
    found = standing(scope.collection, None)
    chart = trends.chart(scope.collection.name, found.over_time)
    if file := download(request, [chart]):
        return file
    context = {"scope": scope, "section": "agreement", "chart": chart, "over": found.over_time}
    return render(request, "reports/over_time.html", {**context, "stale": is_stale(found)})


@action("admin")
@require_GET
def people_quality(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Each annotator's work: how much, how fast, how it agrees with the others and with the reference."""
    found = standing(scope.collection, None)
    charts = trends.people_charts(scope.collection.name, found.people)
    if file := download(request, charts):
        return file
    context = {"scope": scope, "section": "members", "people": found.people, "charts": charts}
    return render(request, "reports/people.html", {**context, "stale": is_stale(found)})
