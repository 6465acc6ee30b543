"""Pages of learning curves."""

from functools import partial

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from actions.options import ActionForm
from actions.pages import answer_action
from actions.services import Actor
from corpus.access import AccessScope, action
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from training.curves import services
from training.curves.options import CurveOptions
from training.curves.results import describe_last, describe_next, draw_curve
from training.jobs import pages
from training.jobs.forms import form_of
from training.jobs.held_out import MEASURE
from training.models import LearningCurve

SHOWN = 50  # The newest curves, on the page of a collection.


@action("admin")
@require_GET
def curves(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the curves of a collection, and the form for a new one."""
    return _render_page(request, scope, form_of(CurveOptions, scope.collection))


def _render_page(request: HttpRequest, scope: AccessScope, form: ActionForm) -> HttpResponse:
    rows = LearningCurve.objects.filter(collection=scope.collection).prefetch_related("points__job").order_by("-pk")
    context = {"scope": scope, "curves": rows[:SHOWN], "form": form, "why_not": pages.why_not()}
    return render(request, "curves/curves.html", context, status=422 if form.is_bound else 200)


@action("admin")
@require_POST
def start_curve(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Queue the trainings of a learning curve."""

    def done(curve: LearningCurve) -> str:
        return reverse("learning_curve", args=[scope.collection.name, curve.number])

    form = form_of(CurveOptions, scope.collection, request.POST)
    return answer_action(request, scope, services.start_curve, form, partial(_render_page, request, scope), done)


@action("admin")
@require_GET
def learning_curve(request: HttpRequest, scope: AccessScope, curve: int) -> HttpResponse:
    """Show one curve; HTMX refreshes the part that changes."""
    curve_row = numbered_or_404(LearningCurve.objects, scope.collection, curve, _("Learning curve not found."))
    points = services.list_points(curve_row)
    result = services.read_result(points)
    words = points[0].job.words or pages.setup_label(points[0].job)
    chart = draw_curve(result, f"{scope.collection.name}: {curve_row}, {curve_row.recipe} ({words})")
    if (file := download(request, (chart,))) is not None:
        return file
    is_over = all(point.job.is_over for point in points)
    context = {
        "scope": scope,
        "curve": curve_row,
        "first": points[0].job,
        "rows": list(zip(points, [estimate for _point, estimate in result.points], strict=True)),
        "result": result,
        "chart": chart,
        "last": describe_last(result),
        "next": describe_next(result),
        "measure": MEASURE,
        "words": words,
        "is_over": is_over,
        "can_resume": any(point.job.state in ("cancelled", "failed") for point in points),
        "waiting": next(filter(None, (pages.explain_queue_wait(point.job) for point in points)), ""),
    }
    if request.headers.get("HX-Request"):
        return render(request, "curves/_curve.html", context, status=286 if is_over else 200)
    return render(request, "curves/curve.html", context)


@action("admin")
@require_POST
def control_curve(request: HttpRequest, scope: AccessScope, curve: int, act: str) -> HttpResponse:
    """Cancel the unfinished points of a curve, or resume those that failed or were cancelled."""
    curve_row = numbered_or_404(LearningCurve.objects, scope.collection, curve, _("Learning curve not found."))
    if act not in services.ACTS:
        raise Http404(_("Unknown action."))
    try:
        services.control_curve(Actor.of(scope), curve_row, act)
    except BadInput as error:
        messages.error(request, str(error))
    return redirect("learning_curve", scope.collection.name, curve_row.number)
