"""Pages of hole filling: ranking uncertainty, the forms that start a filling, and a filling's progress."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.options import ActionForm
from actions.pages import answer_action, form_of
from actions.services import Actor
from benchmark.hole_filling import selectors, services
from benchmark.hole_filling.planning import estimate_filling
from benchmark.models import Filling, Run
from benchmark.report.systems import chosen
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.errors import BadInput

TO_FILL = ("runs", "depth", "qrels", "policy", "panel", "filter", "budget", "max_calls")
TO_SEND = ("first", "policy", "panel", "filter", "budget", "max_calls")


@action("admin")
@require_http_methods(["GET", "POST"])
def fillings(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show ranking uncertainty, the fillings and the form of a new one; estimate it, and start it once confirmed."""
    named: dict[str, Any] = {"runs": request.GET.getlist("runs"), "depth": request.GET.get("depth", "")}
    form = form_of(services.start_filling, request, only=TO_FILL, **selectors.filling_form(scope.collection, **named))

    def show(form: ActionForm) -> HttpResponse:
        return _render_page(request, scope, fill_form=form)

    confirmation: dict[str, Any] = {"confirm": "benchmark/fill_confirm.html", "estimate": estimate_filling}
    return answer_action(request, scope, services.start_filling, form, show, _address_of, **confirmation)


@action("admin")
@require_POST
def send_pairs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Send the most informative pairs to people, or to the judges of a policy."""
    # The newest ranking uncertainty.
    stored = chosen.stored_report(chosen.newest_report(scope.collection, compares=False), [])
    if stored is None or not stored.is_ready:
        messages.error(request, _("Compute the ranking uncertainty first."))
        return redirect("hole_fillings", scope.collection.name)
    # Runs that have been deleted since have no pairs to send.
    runs = Run.objects.filter(pk__in=stored.report.options["runs"], is_deleted=False)
    ranking = {
        "runs": list(runs.values_list("name", flat=True)),
        "depth": stored.k,
        "qrels": stored.report.before.number,
    }
    form_options = {**selectors.send_form(scope.collection), "fixed": ranking}
    form = form_of(services.start_filling, request, only=TO_SEND, **form_options)

    def show(form: ActionForm) -> HttpResponse:
        return _render_page(request, scope, send_form=form)

    return answer_action(request, scope, services.start_filling, form, show, _address_of)


def _address_of(filling: Filling) -> str:
    return reverse("hole_filling", args=[filling.collection.name, filling.number])


def _render_page(
    request: HttpRequest,
    scope: AccessScope,
    *,
    fill_form: ActionForm | None = None,
    send_form: ActionForm | None = None,
) -> HttpResponse:
    """Render the page with its two forms; a submitted one keeps its input."""
    service, collection = services.start_filling, scope.collection
    weights = request.GET.get("weights", "")
    context, files = selectors.fillings_page(collection, with_table="table" in request.GET, weights=weights)
    context["fill"] = fill_form or form_of(service, only=TO_FILL, **selectors.filling_form(collection))
    context["form"] = send_form or form_of(service, only=TO_SEND, **selectors.send_form(collection))
    has_errors = send_form is not None or (fill_form is not None and fill_form.is_bound)
    news: dict[str, Any] = {"news": "benchmark/_bounds.html", "status": 422 if has_errors else 200}
    return answer_page(request, scope, "benchmark/hole_fillings.html", context, **files, **news)


@action("admin")
@require_GET
def filling(request: HttpRequest, scope: AccessScope, filling: int) -> HttpResponse:
    """Show one filling: its funnel, its judges, and the outcome. HTMX polls it."""
    filling_row = selectors.find_filling(scope.collection, filling)
    context, files = selectors.filling_page(filling_row)
    news: dict[str, Any] = {"news": "benchmark/_hole_filling.html", "is_over": filling_row.is_over}
    return answer_page(request, scope, "benchmark/hole_filling.html", context, **files, **news)


@action("admin")
@require_POST
def control_filling(request: HttpRequest, scope: AccessScope, filling: int, act: str) -> HttpResponse:
    """Finish a filling with what is settled by now (a large one by a worker), or cancel it."""
    if act not in services.FILLING_ACTIONS:
        raise Http404(_("Unknown action."))
    try:
        services.FILLING_ACTIONS[act](Actor.of(scope), selectors.find_filling(scope.collection, filling))
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    return redirect("hole_filling", scope.collection.name, filling)
