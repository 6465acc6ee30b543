"""Pages of the panel: the candidates, the proposed sets, and making one of them the panel."""

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
from annotation.quality.panels.applying import has_chosen, make_panel, offered_panels, preview_change
from annotation.quality.panels.report import choose_panel
from annotation.quality.panels.subsets import SIZES_TO_CHOOSE
from corpus.chart_downloads import download
from corpus.errors import BadInput
from jobs import background
from judges.engine.plan import records_of
from judges.models import JudgeVersion
from judges.probes.self_check import forecast


@action("admin")
@require_GET
def panel(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Quality, independence, price of candidates, the most independent sets above the floor."""
    known = known_assessors(scope.collection)
    asked = page.read_filters(request.GET, known)
    context = {
        "scope": scope,
        "asked": asked,
        "everybody": [one for one in known if one.kind in JUDGES],
        "current": has_chosen(scope.collection),
        "sizes": SIZES_TO_CHOOSE,
        "checking": background.last(self_checks.TASK, scope.collection.pk),
    }
    try:
        chosen = choose_panel(
            scope.collection,
            asked.names,
            known=known,
            floor=asked.floor,
            bootstrap=page.RESAMPLES,
            size=asked.size,
        )
    except BadInput as error:
        return render(request, "panels/panel.html", {**context, "problem": str(error)})
    found = page.build_page(chosen, scope.collection.relevant_from)
    if file := download(request, found["charts"]):
        return file
    return render(request, "panels/panel.html", {**context, "page": found})


@action("admin")
@require_http_methods(["GET", "POST"])
def use_panel(request: HttpRequest, scope: Scope) -> HttpResponse:
    """First what would change; it is changed when that was confirmed. Only owners change the default of the site."""
    if request.method == "POST":
        return _apply_panel(request, scope)
    judges = request.GET.getlist("judge")
    try:
        found = preview_change(scope.collection, judges)
    # Our own links name judges that can form a panel, so another address leads nowhere.
    except BadInput as error:
        raise Http404(str(error)) from error
    checks = self_checks.newest_self_checks(scope.collection, judges).values()
    context = {"scope": scope, "change": found, "judges": judges, "checks": checks}
    return render(request, "panels/panel_use.html", context)


def _apply_panel(request: HttpRequest, scope: Scope) -> HttpResponse:
    default = scope.user.is_owner and "default" in request.POST
    try:
        with transaction.atomic():
            made = make_panel(collection=scope.collection, judges=request.POST.getlist("judge"), default=default)
            record(scope, "panel.used", panel=made.name, judges=list(made.ensemble), default=default)
    except BadInput as error:
        messages.error(request, _("Nothing was changed: %(error)s.") % {"error": error})
    else:
        messages.success(
            request,
            _("Panel %(made)s now votes with %(join)s.") % {"made": made.name, "join": ", ".join(made.ensemble)},
        )
    return redirect("panel", scope.collection.name)


@action("admin")
@require_http_methods(["GET", "POST"])
def self_check(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Run the self-check: GET shows its cost, POST lets a worker ask the judges."""
    given = request.POST if request.method == "POST" else request.GET
    try:
        judges = _find_judges(scope, given)
        if request.method == "POST":
            with transaction.atomic():
                self_checks.ask_later(scope.collection, judges)
                record(scope, "judge.self-check", judges=[row.name for row in judges])
            messages.info(request, _("The self-check is running in the background. Reload this page in a minute."))
            return redirect("panel", scope.collection.name)
    except BadInput as error:
        messages.error(request, _("Not started: %(error)s.") % {"error": error})
        return redirect("panel", scope.collection.name)
    asked = self_checks.collection_probes(scope.collection)
    context = {
        "scope": scope,
        "checks": self_checks.newest_self_checks(scope.collection, [row.name for row in judges]).values(),
        "built_in": sum(not probe.own for probe in asked),
        "own": sum(probe.own for probe in asked),
        "estimate": forecast(records_of(judges), asked, self_checks.REPEATS),
    }
    return render(request, "panels/self_check.html", context)


def _find_judges(scope: Scope, given: QueryDict) -> list[JudgeVersion]:
    """The named judges, or those of a panel that may be named here. Raises BadInput."""
    if names := given.getlist("judge"):
        return self_checks.current_versions(names)
    # Never the panel of another collection, whose name would tell that it exists.
    panel = offered_panels(scope.collection).filter(name=given.get("panel", "")).first()
    if panel is None:
        raise BadInput(_("Name judges or a panel"))
    return self_checks.panel_judges(panel.name)[1]
