"""Pages of panel selection: candidates and proposed sets, the change of the panel, and self-checks."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.agreement.grade_matrix import JUDGES, known_assessors
from annotation.quality.panels import page, self_checks
from annotation.quality.panels.applying import chosen_name, make_panel, offered_panels, preview_change
from annotation.quality.panels.report import choose_panel
from annotation.quality.panels.subsets import SIZES_TO_CHOOSE
from corpus.chart_downloads import download
from corpus.errors import BadInput
from jobs import background
from judges.costs.judge_records import records_of
from judges.models import JudgeVersion, Panel
from judges.probes.self_check import forecast


@action("admin")
@require_GET
def panel(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show quality, independence and price of the candidates, and the most independent sets above the floor."""
    assessors = known_assessors(scope.collection)
    filters = page.read_filters(request.GET, assessors)
    context = {
        "scope": scope,
        "asked": filters,
        "everybody": [assessor for assessor in assessors if assessor.kind in JUDGES],
        "current": Panel.objects.filter(name=chosen_name(scope.collection)).values_list("name", flat=True).first(),
        "sizes": SIZES_TO_CHOOSE,
        "checking": background.last(self_checks.TASK, scope.collection.pk),
    }
    try:
        selection = choose_panel(
            scope.collection,
            filters.names,
            assessors=assessors,
            floor=filters.floor,
            bootstrap=page.RESAMPLES,
            size=filters.size,
        )
    except BadInput as error:
        return render(request, "panels/panel.html", {**context, "problem": str(error)})
    page_context = page.build_page(selection, scope.collection.relevant_from)
    if file := download(request, page_context["charts"]):
        return file
    return render(request, "panels/panel.html", {**context, "page": page_context})


@action("admin")
@require_http_methods(["GET", "POST"])
def use_panel(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show what a change of the panel would do; POST changes it. Only owners change the default of the site."""
    if request.method == "GET":
        judges = request.GET.getlist("judge")
        try:
            change = preview_change(scope.collection, judges)
        # Links of our pages name judges that can form a panel, so any other address is unknown.
        except BadInput as error:
            raise Http404(str(error)) from error
        checks = self_checks.newest_self_checks(scope.collection, judges).values()
        context = {"scope": scope, "change": change, "judges": judges, "checks": checks}
        return render(request, "panels/panel_use.html", context)
    default = scope.user.is_owner and "default" in request.POST
    try:
        with transaction.atomic():
            panel = make_panel(collection=scope.collection, judges=request.POST.getlist("judge"), default=default)
            record(scope, "panel.used", panel=panel.name, judges=list(panel.ensemble), default=default)
    except BadInput as error:
        messages.error(request, _("Nothing was changed: %(error)s.") % {"error": error})
    else:
        words = _("Panel %(made)s now votes with %(join)s.")
        messages.success(request, words % {"made": panel.name, "join": ", ".join(panel.ensemble)})
        return redirect("models", scope.collection.name)
    return redirect("panel", scope.collection.name)


@action("admin")
@require_http_methods(["GET", "POST"])
def self_check(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the cost of a self-check; POST has a worker run it."""
    listed = "panel" if scope.collection.lab else "models"
    parameters = request.POST if request.method == "POST" else request.GET
    try:
        judges = _find_judges(scope, parameters)
        if request.method == "POST":
            with transaction.atomic():
                self_checks.ask_later(scope.collection, judges)
                record(scope, "judge.self-check", judges=[row.name for row in judges])
            messages.info(request, _("The self-check is running in the background. Reload this page in a minute."))
            return redirect(listed, scope.collection.name)
    except BadInput as error:
        messages.error(request, _("Not started: %(error)s.") % {"error": error})
        return redirect(listed, scope.collection.name)
    probes = self_checks.collection_probes(scope.collection)
    context = {
        "scope": scope,
        "checks": self_checks.newest_self_checks(scope.collection, [row.name for row in judges]).values(),
        "built_in": sum(not probe.own for probe in probes),
        "own": sum(probe.own for probe in probes),
        "estimate": forecast(records_of(judges), probes, self_checks.REPEATS),
    }
    return render(request, "panels/self_check.html", context)


def _find_judges(scope: Scope, parameters: QueryDict) -> list[JudgeVersion]:
    """Return the judges that the parameters name, or those of the panel that they name. Raises BadInput."""
    if names := parameters.getlist("judge"):
        return self_checks.current_versions(names)
    # Not the panel of another collection: its name would reveal that the collection exists.
    panel = offered_panels(scope.collection).filter(name=parameters.get("panel", "")).first()
    if panel is None:
        raise BadInput(_("Name judges or a panel"))
    return self_checks.panel_judges(panel.name)[1]
