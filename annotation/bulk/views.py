"""Pages of bulk acts: selected pairs become a plan, its page is confirmed, and its result may be undone."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.bulk import acts, reassigning
from annotation.bulk.exporting import CONTENT_TYPES, write_lines
from annotation.bulk.kinds import KINDS
from annotation.data.pair_filters import PairFilters
from annotation.data.views.pairs import get_campaign, render_pairs
from annotation.models.pair_table import BulkAct
from annotation.permissions import Scope, action
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404

SHOWN = 50


@action("admin")
@require_http_methods(["GET", "POST"])
def bulk_acts(request: HttpRequest, scope: Scope) -> HttpResponse:
    """List the latest bulk acts; POST plans one for the pairs selected in the table."""
    if request.method == "POST":
        return _plan_act(request, scope)
    found = BulkAct.objects.filter(collection=scope.collection).exclude(state=BulkAct.State.PLANNED)
    rows = found.select_related("made_by").defer("changes").order_by("-pk")[:SHOWN]
    titles = _name_options(list(rows))
    listed = [(row, KINDS[BulkAct.Kind(row.kind)].can_undo(row), titles[row.pk]) for row in rows]
    return render(request, "bulk/acts.html", {"scope": scope, "acts": listed})


def _name_options(acts: list[BulkAct]) -> dict[int, Any]:
    """Return by act the title of its chosen option, or to whom its pairs went."""
    names = reassigning.name_recipients(acts)
    return {act.pk: names.get(act.pk) or KINDS[BulkAct.Kind(act.kind)].options.get(act.option, "") for act in acts}


def _plan_act(request: HttpRequest, scope: Scope) -> HttpResponse:
    # The query comes back from a form; what is longer than any set of filters is nobody's.
    query = request.POST.get("query", "")[:5000]
    asked = QueryDict(query)
    try:
        act = acts.plan_act(
            collection=scope.collection,
            kind=request.POST.get("act", ""),
            pairs=_read_selection(request, scope, PairFilters.read(asked)),
            by=scope.user,
        )
    except BadInput as error:
        # The table comes back with the same filters, so that the selection can be narrowed.
        return render_pairs(request, scope, asked, problem=str(error))
    return redirect("bulk_act", scope.collection.name, act.number)


def _read_selection(request: HttpRequest, scope: Scope, filters: PairFilters) -> list[int]:
    """The pairs whose boxes are ticked, or with `all` every pair that matches the filters."""
    if "all" in request.POST:
        return acts.select_matching(scope.collection, filters, get_campaign(scope.collection, filters.campaign))
    ticked = request.POST.getlist("pair")
    # More than 18 digits are no id of a row, and the database would refuse the whole query.
    return acts.select_pairs(scope.collection, [int(pk) for pk in ticked if pk.isdecimal() and len(pk) <= 18])


@action("admin")
@require_GET
def bulk_act(request: HttpRequest, scope: Scope, bulk: int) -> HttpResponse:
    """Show a bulk act: its plan to confirm, or its result."""
    return _render_act(request, scope, _find_act(scope, bulk))


def _render_act(request: HttpRequest, scope: Scope, act: BulkAct, problem: str = "") -> HttpResponse:
    kind = KINDS[BulkAct.Kind(act.kind)]
    is_planned = act.state == BulkAct.State.PLANNED
    count = kind.count(scope.collection, act.pairs) if is_planned else act.affected
    context = {
        "scope": scope,
        "act": act,
        "kind": kind,
        "options": kind.options_of(act) if is_planned else {},
        "option": _name_options([act])[act.pk],
        "count": count,
        # What stays as it is: the page says why.
        "others": act.size - count,
        "problem": problem,
        "can_undo": kind.can_undo(act),
    }
    return render(request, "bulk/act.html", context, status=422 if problem else 200)


@action("admin")
@require_POST
def run_bulk_act(request: HttpRequest, scope: Scope, bulk: int) -> HttpResponseBase:
    """Do what was planned; an export answers with its file."""
    act = _find_act(scope, bulk)
    try:
        done = acts.run_act(act, option=request.POST.get("option", ""), by=scope.user)
    except BadInput as error:
        return _render_act(request, scope, act, str(error))
    if done.kind == BulkAct.Kind.EXPORT:
        return _stream_pairs(scope, done)
    return redirect("bulk_act", scope.collection.name, done.number)


def _stream_pairs(scope: Scope, act: BulkAct) -> StreamingHttpResponse:
    lines = write_lines(scope.collection, act.pairs, act.option)
    name = f"{scope.collection.name}-pairs-{act.number}.{act.option}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type=CONTENT_TYPES[act.option], headers=headers)


@action("admin")
@require_POST
def undo_bulk_act(request: HttpRequest, scope: Scope, bulk: int) -> HttpResponse:
    """Undo a bulk act."""
    act = _find_act(scope, bulk)
    try:
        acts.undo_act(act, by=scope.user)
    except BadInput as error:
        return _render_act(request, scope, act, str(error))
    messages.success(request, _("Action undone."))
    return redirect("bulk_act", scope.collection.name, act.number)


def _find_act(scope: Scope, number: int) -> BulkAct:
    """The act of this collection with this number; a plan is its author's alone."""
    rows = BulkAct.objects.select_related("made_by")
    act = numbered_or_404(rows, scope.collection, number, _("Act on pairs not found."))
    # A plan holds what somebody selected; another admin could confirm it without having seen the selection.
    if act.state == BulkAct.State.PLANNED and act.made_by_id != scope.user.pk:
        raise Http404
    return act
