"""Agreement on the Quality page: all assessors two by two, as numbers, heat map and table."""

from collections.abc import Callable
from functools import wraps

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.agreement import cached_results, page
from annotation.agreement.grade_matrix import known_assessors
from annotation.agreement.measures import MANY
from annotation.agreement.report import mixed_prompts, mixed_votes
from charts import Chart
from corpus.models import Collection

SHOWN = 12  # Names of a cluster that stand on the page.
Page = Callable[[HttpRequest, Scope], HttpResponse]


def quality_address(collection: Collection, section: str, query: str = "") -> str:
    """Return the address of a section of the Quality page."""
    return f"{reverse('quality', args=[collection.name])}{f'?{query}' if query else ''}#{section}"


def describe_agreement(request: HttpRequest, scope: Scope) -> tuple[dict[str, object], Chart | None]:
    """Return the Quality page's context on how far the chosen assessors agree, and its heat map, which can be saved."""
    known = known_assessors(scope.collection)
    asked = page.read_filters(request.GET, scope.collection, known)
    found = cached_results.get_figures(scope.collection, asked, known)
    report = found.report
    groups = [(label, [one for one in known if one.kind in kinds]) for label, kinds in page.GROUPS]
    context: dict[str, object] = {
        "asked": asked,
        "groups": [group for group in groups if group[1]],
        "many": len(known) > MANY,
        "measures": page.MEASURES,
        "populations": page.POPULATIONS,
        "found": found,
        "report": report,
        "second": found.second,
        "mixed": mixed_prompts(scope.collection),
    }
    if report is None or found.second is None:
        return context, None
    context |= {
        "summary": [*page.summarise_agreement(report, asked), *filter(None, [mixed_votes(report, scope.collection)])],
        "weakest": page.find_weakest(report, asked),
        "highest": 1 if asked.binarize else scope.collection.grades,  # Of the grades that are compared.
        # With two grades the three alphas are one.
        "two_grades": scope.collection.grades == 1 or asked.binarize is not None,
    }
    if len(report.assessors) <= MANY:
        majority = list(zip(report.assessors, report.measures.majority, strict=True))
        context |= {"matrix": page.build_matrix(report, asked), "majority": majority}
        return context, page.draw_heat_map(report, asked)
    # Of many assessors sorted lists and clusters are shown in place of the matrix.
    solution = found.second["solution"]
    usable = solution and not solution["collapsed"]
    estimated = {name: share for name, share, _rates in found.second["accuracies"]} if usable else {}
    cluster = {place: number for number, one in enumerate(found.clusters, start=1) for place in one["members"]}
    context |= {
        "couples": page.list_couples(report, asked, request.GET),
        "assessors": page.list_assessors(report, asked, request.GET, estimated, cluster),
        "clusters": [(one, [report.name(place) for place in one["members"][:SHOWN]]) for one in found.clusters],
        "alone": len(report.assessors) - len(cluster),
    }
    return context, None


@action("admin")
@require_POST
def measure_agreement(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Measure what the address asks for and keep it: for a page that cannot wait. A worker does it where one lives."""
    asked = page.read_filters(request.GET, scope.collection, known_assessors(scope.collection))
    back = redirect(quality_address(scope.collection, "agreement", asked.query()))
    record(scope, "statistics.asked")
    try:
        done = cached_results.refresh(scope.collection, asked)
    except cached_results.MeasuringFailed:
        return back  # the page says why
    messages.info(
        request, _("Figures updated.") if done else _("Computing in the background. Reload this page in a moment.")
    )
    return back


@action("admin")
@require_GET
def agreement_csv(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Download the couples of assessors with all measures as a table."""
    known = known_assessors(scope.collection)
    asked = page.read_filters(request.GET, scope.collection, known)
    found = cached_results.get_figures(scope.collection, asked, known)
    if found.report is None:
        if found.stored:
            messages.info(request, _("Not computed yet"))
        return redirect(quality_address(scope.collection, "agreement", asked.query()))
    return page.send_csv(found.report)


def says_why(page: Page) -> Page:
    """Decorate a page: a failed calculation leads to the agreement page with the reason."""

    @wraps(page)
    def shown(request: HttpRequest, scope: Scope) -> HttpResponse:
        try:
            with cached_results.measuring(scope.collection):
                return page(request, scope)
        except cached_results.MeasuringFailed as error:
            messages.error(request, _("Calculation failed: %(failure)s.") % {"failure": error})
            return redirect(quality_address(scope.collection, "agreement"))

    return shown
