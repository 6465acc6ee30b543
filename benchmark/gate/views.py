"""Pages of the gate: its history with the form of a verdict, one verdict, and the judging of what decides it."""

import json
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from actions.options import ActionForm
from actions.pages import answer_action, form_of
from actions.services import Actor
from benchmark.gate import selectors, services
from benchmark.gate.summary import as_junit, as_markdown
from benchmark.hole_filling.options import FillingPolicy
from benchmark.models import Gate
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page, send_lines
from corpus.errors import BadInput
from corpus.models import Collection

TO_JUDGE = ("policy", "panel", "filter", "budget", "max_calls")
# By the ending of the file's name.
FILES: dict[str, Callable[[Gate], str]] = {
    "md": lambda gate: as_markdown(gate.result),
    "xml": lambda gate: as_junit(gate.result),
    "json": lambda gate: json.dumps(selectors.gate_document(gate), ensure_ascii=False) + "\n",
}


@action("results")
@require_GET
def gates(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the verdicts, the newest first, and the form of a new one."""
    return _render_gates(request, scope, _form_of(scope))


@action("admin")
@require_POST
def decide_gate(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Tell a verdict."""

    def show(form: ActionForm) -> HttpResponse:
        return _render_gates(request, scope, form, status=422)

    return answer_action(request, scope, services.decide_gate, _form_of(scope, request), show, _address_of)


def _form_of(scope: AccessScope, request: HttpRequest | None = None) -> ActionForm:
    return form_of(services.decide_gate, request, **selectors.gate_form(scope.collection))


def _render_gates(request: HttpRequest, scope: AccessScope, form: ActionForm, status: int = 200) -> HttpResponse:
    context, tables = selectors.gates_page(scope.collection, whole="table" in request.GET)
    context["form"] = form
    return answer_page(request, scope, "benchmark/gate/gates.html", context, tables=tables, status=status)


def _address_of(gate: Gate) -> str:
    return reverse("gate", args=[gate.collection.name, gate.number])


@action("results")
@require_GET
def gate(request: HttpRequest, scope: AccessScope, gate: int) -> HttpResponseBase:
    """Show one verdict, or send it as Markdown, JUnit XML or JSON (`file`)."""
    row = selectors.find_gate(scope.collection, gate)
    if (kind := request.GET.get("file")) is not None:
        if kind not in FILES:
            raise Http404(_("Unknown file."))
        return send_lines([FILES[kind](row)], f"{scope.collection.name}-gate-{row.number}.{kind}")
    return _render_gate(request, scope, row, form_of(services.judge_deciding, **_judging_form(row)))


@action("admin")
@require_POST
def judge_deciding(request: HttpRequest, scope: AccessScope, gate: int) -> HttpResponse:
    """Have the pairs that decide a verdict judged: the estimate first, then the start."""
    row = selectors.find_gate(scope.collection, gate)

    def show(form: ActionForm) -> HttpResponse:
        return _render_gate(request, scope, row, form, status=422)

    def start(actor: Actor, _collection: Collection, options: Any) -> Gate:
        return services.judge_deciding(actor, row, options)

    def estimate(_actor: Actor, _collection: Collection, options: Any) -> dict[str, Any]:
        is_by_people = options.policy == FillingPolicy.PEOPLE
        pairs = row.result["deciding_pairs"]
        return {
            "gate": row,
            "pairs": pairs,
            "people": is_by_people,
            "estimate": services.estimate_deciding(row, options),
        }

    form = form_of(services.judge_deciding, request, **_judging_form(row))
    confirmation: dict[str, Any] = {"confirm": "benchmark/gate/confirm.html", "estimate": estimate}
    return answer_action(request, scope, start, form, show, _address_of, **confirmation)


@action("admin")
@require_POST
def decide_again(request: HttpRequest, scope: AccessScope, gate: int) -> HttpResponse:
    """Tell a verdict again, by what has been judged since."""
    row = selectors.find_gate(scope.collection, gate)
    try:
        return redirect(_address_of(services.decide_again(Actor.of(scope), row)))
    except BadInput as error:
        messages.error(request, str(error))
        return redirect(_address_of(row))


def _judging_form(gate: Gate) -> dict[str, Any]:
    """Return the arguments of the form for the pairs that decide."""
    return {"only": TO_JUDGE, "fixed": services.ranking_options(gate), **selectors.judging_form(gate.collection)}


def _render_gate(
    request: HttpRequest, scope: AccessScope, gate: Gate, form: ActionForm, status: int = 200
) -> HttpResponse:
    context = selectors.gate_page(gate)
    context["form"] = form
    return answer_page(request, scope, "benchmark/gate/gate.html", context, charts=[context["chart"]], status=status)
