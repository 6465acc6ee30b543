"""Pages of bulk acts: plan one for selected pairs, confirm it, undo it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.services import Actor
from annotation.access.permissions import Scope, action
from annotation.data.bulk import selectors, services
from annotation.data.bulk.kinds import KINDS
from annotation.data.bulk.options import ActOptions
from annotation.data.bulk.reassigning import ANYONE
from annotation.data.pair_filters import PairFilters
from annotation.data.pairs import get_campaign, matching_pairs
from annotation.data.views.pairs import render_pairs
from annotation.models import Membership
from annotation.models.pair_table import BulkAct
from corpus.errors import BadInput
from corpus.labels import name_grade

SHOWN = 50


@action("admin")
@require_http_methods(["GET", "POST"])
def bulk_acts(request: HttpRequest, scope: Scope) -> HttpResponse:
    """List the latest bulk acts; POST plans one, for the ticked pairs or with `all` for all that match the filters."""
    if request.method == "POST":
        # The filters of the table, as the form repeats them; no valid ones are longer.
        query = QueryDict(request.POST.get("query", "")[:5000])
        try:
            if "all" in request.POST:
                filters = PairFilters.read(query)
                campaign = get_campaign(scope.collection, filters.campaign)
                # Up to one more than an act takes, which `plan_act` refuses.
                matching = matching_pairs(scope.collection, filters, campaign=campaign).order_by("pk")
                pairs = list(matching.values_list("pk", flat=True)[: services.MOST + 1])
            else:
                # Longer numbers are no ids, and PostgreSQL would refuse the whole query.
                ticked = [int(pk) for pk in request.POST.getlist("pair") if pk.isdecimal() and len(pk) <= 18]
                pairs = services.select_pairs(scope.collection, ticked)
            kind = request.POST.get("act", "")
            act = services.plan_act(collection=scope.collection, kind=kind, pairs=pairs, by=scope.user)
        except BadInput as error:
            # The table comes back with the same filters, so that the selection can be narrowed.
            return render_pairs(request, scope, query, problem=str(error))
        return redirect("bulk_act", scope.collection.name, act.number)
    done = selectors.acts_of(scope.collection).exclude(state=BulkAct.State.PLANNED)
    rows = list(done.defer("changes").order_by("-pk")[:SHOWN])
    titles = _name_options(rows)
    entries = [(row, KINDS[row.kind].can_undo(row), titles[row.pk]) for row in rows]
    return render(request, "bulk/acts.html", {"scope": scope, "acts": entries})


def _name_options(acts: list[BulkAct]) -> dict[int, Any]:
    """Return, by act, the title of its option, or to whom its pairs went."""
    options = {act.pk: act.option for act in acts if act.kind == BulkAct.Kind.REASSIGN}
    members = Membership.objects.filter(pk__in=[option for option in options.values() if option.isdecimal()])
    names = {str(pk): name for pk, name in members.values_list("pk", "user__username")} | {ANYONE: _("anyone")}
    label = _("to %(who)s")
    titles = {act: label % {"who": names[option]} for act, option in options.items() if option in names}
    titles |= {
        act.pk: name_grade(int(act.option), act.collection.grades, act.collection.grade_names)
        for act in acts
        if act.kind == BulkAct.Kind.LABEL and act.option
    }
    return {act.pk: titles.get(act.pk) or KINDS[act.kind].options.get(act.option, "") for act in acts}


@action("admin")
@require_GET
def bulk_act(request: HttpRequest, scope: Scope, bulk: int) -> HttpResponse:
    """Show a bulk act: its plan to confirm, or its result."""
    return _render_act(request, scope, selectors.find_act(scope.collection, bulk, scope.user))


def _render_act(request: HttpRequest, scope: Scope, act: BulkAct, problem: str = "") -> HttpResponse:
    context = {"scope": scope, "act": act, "kind": KINDS[act.kind], "problem": problem, **selectors.describe_act(act)}
    # `others`: pairs that stay as they are, for which the page gives the reason.
    context |= {"option": _name_options([act])[act.pk], "others": act.size - context["count"]}
    return render(request, "bulk/act.html", context, status=422 if problem else 200)


@action("admin")
@require_POST
def run_bulk_act(request: HttpRequest, scope: Scope, bulk: int) -> HttpResponseBase:
    """Carry out a planned act; an export returns its file."""
    act = selectors.find_act(scope.collection, bulk, scope.user)
    try:
        options = ActOptions.read({name: request.POST.get(name, "") for name in ("option", "note")})
        done = services.run_act(Actor.of(scope), act, options)
    except BadInput as error:
        return _render_act(request, scope, act, str(error))
    if done.kind == BulkAct.Kind.EXPORT:
        return selectors.stream_file(done)
    return redirect("bulk_act", scope.collection.name, done.number)


@action("admin")
@require_POST
def undo_bulk_act(request: HttpRequest, scope: Scope, bulk: int) -> HttpResponse:
    """Undo a bulk act."""
    act = selectors.find_act(scope.collection, bulk, scope.user)
    try:
        services.undo_act(Actor.of(scope), act)
    except BadInput as error:
        return _render_act(request, scope, act, str(error))
    messages.success(request, _("Action undone."))
    return redirect("bulk_act", scope.collection.name, act.number)
