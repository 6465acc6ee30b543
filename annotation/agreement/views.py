"""The agreement section of the Quality page: pairwise agreement as summary, heat map and table."""

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
from annotation.agreement.grade_matrix import known_assessors, visible_assessors
from annotation.agreement.measures import MANY
from annotation.agreement.report import mixed_prompts, mixed_votes, shared_errors
from charts import Chart
from corpus.models import Collection

SHOWN = 12  # The most names of a cluster on the page.
Page = Callable[[HttpRequest, Scope], HttpResponse]


def quality_address(collection: Collection, section: str, query: str = "") -> str:
    """Return the address of a section of the Quality page."""
    return f"{reverse('quality', args=[collection.name])}{f'?{query}' if query else ''}#{section}"


def describe_agreement(request: HttpRequest, scope: Scope) -> tuple[dict[str, object], Chart | None]:
    """Return the context of the agreement section, and its heat map for saving."""
    assessors = visible_assessors(scope.collection, hides_people=not scope.may_admin)
    filters = page.read_filters(request.GET, scope.collection, assessors)
    figures = cached_results.get_figures(scope.collection, filters, assessors)
    report = figures.report
    groups = [(label, [assessor for assessor in assessors if assessor.kind in kinds]) for label, kinds in page.GROUPS]
    context: dict[str, object] = {
        "asked": filters,
        "groups": [group for group in groups if group[1]],
        "many": len(assessors) > MANY,
        "measures": page.MEASURES,
        "populations": page.POPULATIONS,
        "found": figures,
        "report": report,
        "second": figures.second,
        "mixed": mixed_prompts(scope.collection),
    }
    if report is None or figures.second is None:
        return context, None
    context |= {
        "summary": [
            *page.summarise_agreement(report, filters),
            *filter(None, [mixed_votes(report, scope.collection), shared_errors(report)]),
        ],
        "weakest": page.find_weakest(report, filters),
        "scale": 1 if filters.binarize else scope.collection,  # Of the compared grades.
        # With two grades the three alphas are the same.
        "two_grades": scope.collection.grades == 1 or filters.binarize is not None,
    }
    if len(report.assessors) <= MANY:
        majority = list(zip(report.assessors, report.measures.majority, strict=True))
        context |= {"matrix": page.build_matrix(report, filters), "majority": majority}
        return context, page.draw_heat_map(report, filters)
    # For many assessors, sorted lists and clusters instead of the matrix.
    solution = figures.second["solution"]
    usable = solution and not solution["collapsed"]
    estimated = {name: share for name, share, _rates in figures.second["accuracies"]} if usable else {}
    cluster = {
        position: number for number, cluster in enumerate(figures.clusters, start=1) for position in cluster["members"]
    }
    context |= {
        "couples": page.list_couples(report, filters, request.GET),
        "assessors": page.list_assessors(report, filters, request.GET, estimated, cluster),
        "clusters": [
            (cluster, [report.name(position) for position in cluster["members"][:SHOWN]])
            for cluster in figures.clusters
        ],
        "alone": len(report.assessors) - len(cluster),
    }
    return context, None


@action("admin")
@require_POST
def measure_agreement(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Measure the agreement for the filters and store it, in a worker if there is one."""
    filters = page.read_filters(request.GET, scope.collection, known_assessors(scope.collection))
    page_of_filters = redirect(quality_address(scope.collection, "agreement", filters.query()))
    record(scope, "statistics.asked")
    try:
        done = cached_results.refresh(scope.collection, filters)
    except cached_results.MeasuringFailed:
        # The page shows the reason.
        return page_of_filters
    messages.info(
        request, _("Figures updated.") if done else _("Computing in the background. Reload this page in a moment.")
    )
    return page_of_filters


@action("results")
@require_GET
def agreement_csv(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Download the couples of assessors with all measures as a table."""
    assessors = visible_assessors(scope.collection, hides_people=not scope.may_admin)
    filters = page.read_filters(request.GET, scope.collection, assessors)
    figures = cached_results.get_figures(scope.collection, filters, assessors)
    if figures.report is None:
        if figures.stored:
            messages.info(request, _("Not computed yet"))
        return redirect(quality_address(scope.collection, "agreement", filters.query()))
    return page.send_csv(figures.report)


def explain_failure(page: Page) -> Page:
    """Decorate a page: where a calculation fails, redirect to the agreement section with the reason."""

    @wraps(page)
    def wrapper(request: HttpRequest, scope: Scope) -> HttpResponse:
        try:
            with cached_results.measuring(scope.collection):
                return page(request, scope)
        except cached_results.MeasuringFailed as error:
            messages.error(request, _("Calculation failed: %(failure)s.") % {"failure": error})
            return redirect(quality_address(scope.collection, "agreement"))

    return wrapper
