"""One pair: its page, its panel beside the table, and what an admin does with it there."""

from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from actions.services import Actor
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.data import pairs as listing
from annotation.data.bulk import selectors, services
from annotation.data.bulk.options import ActOptions
from annotation.data.pair_detail import load_pair_detail
from annotation.data.pair_filters import PairFilters
from annotation.models.pair_table import BulkAct, PairNote
from annotation.work.judging.document import allow_images
from corpus.errors import BadInput
from corpus.models import Pair

ACTS = (BulkAct.Kind.LABEL, BulkAct.Kind.SEND)
LONGEST_NOTE = 2000


@action("results")
@require_GET
def pair(request: HttpRequest, scope: Scope, pair: int) -> HttpResponse:
    """Show one pair: texts, debate, votes, label, judgments, and every attempt with its prompt and raw answer.

    HTMX gets the panel beside the table. `act`: the number of what was just done with the pair, to undo it.
    """
    number = request.GET.get("act", "")
    act = selectors.find_act(scope.collection, int(number), scope.user) if number.isdecimal() else None
    return _render_pair(request, scope, _get_pair(scope, pair), act=act)


@action("admin")
@require_POST
def act_on_pair(request: HttpRequest, scope: Scope, pair: int) -> HttpResponse:
    """Set the label of one pair, or send it to people: a bulk act on it alone. With `undo`, undo that act."""
    row, actor = _get_pair(scope, pair), Actor.of(scope)
    try:
        if number := request.POST.get("undo", ""):
            act = selectors.find_act(scope.collection, int(number) if number.isdecimal() else 0, scope.user)
            services.undo_act(actor, act)
            act.refresh_from_db()
        else:
            kind = request.POST.get("kind", "")
            if kind not in ACTS:
                raise BadInput(_("Choose one of the actions."))
            options = ActOptions.read({name: request.POST.get(name, "") for name in ("option", "note")})
            # One transaction: a plan that is refused leaves nothing behind.
            with transaction.atomic():
                act = services.plan_act(collection=scope.collection, kind=kind, pairs=[row.pk], by=scope.user)
                act = services.run_act(actor, act, options)
    except BadInput as error:
        return _render_pair(request, scope, row, problem=str(error))
    return _answer(request, scope, row, act=act)


@action("admin")
@require_POST
def write_note(request: HttpRequest, scope: Scope, pair: int) -> HttpResponse:
    """Write a note on the pair, which all admins read."""
    row = _get_pair(scope, pair)
    text = request.POST.get("text", "").replace("\0", "").strip()
    if not 1 <= len(text) <= LONGEST_NOTE:
        problem = _("Write a note of 1 to %(most)s characters.") % {"most": f"{LONGEST_NOTE:,}"}
        return _render_pair(request, scope, row, problem=problem)
    with transaction.atomic():
        PairNote.objects.create(pair=row, written_by=scope.user, text=text)
        record(scope, "pairs.noted", pair=row.pk)
    return _answer(request, scope, row)


def _get_pair(scope: Scope, pair: int) -> Pair:
    pairs = Pair.objects.select_related("query", "document")
    return get_object_or_404(pairs, pk=pair, collection=scope.collection)


def _answer(request: HttpRequest, scope: Scope, pair: Pair, act: BulkAct | None = None) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return _render_pair(request, scope, pair, act=act, changed=True)
    if act is None:
        messages.success(request, _("Note saved."))
    address = reverse("pair", args=[scope.collection.name, pair.pk])
    return redirect(f"{address}?{urlencode({'act': act.number})}" if act else address)


def _render_pair(
    request: HttpRequest,
    scope: Scope,
    pair: Pair,
    *,
    act: BulkAct | None = None,
    problem: str = "",
    changed: bool = False,
) -> HttpResponse:
    """Render the page of a pair, or its panel; where the pair `changed`, with its row in the table."""
    is_panel = bool(request.headers.get("HX-Request"))
    context = {
        "scope": scope,
        "pair": pair,
        "evidence": load_pair_detail(pair, hides_people=not scope.may_admin),
        "notes": pair.notes.select_related("written_by").order_by("pk"),
        "grades": range(scope.collection.grades + 1),
        "act": act,
        "can_undo": act is not None and selectors.describe_act(act)["can_undo"],
        "problem": problem,
        "is_panel": is_panel,
    }
    if changed:
        # The table beside the panel shows states of the campaign that its address names.
        query = QueryDict(urlsplit(request.headers.get("HX-Current-URL", "")).query)
        filters, columns = PairFilters.read(query), listing.columns_of(scope)
        campaign = listing.get_campaign(scope.collection, filters.campaign)
        rows = listing.load_rows([pair.pk], scope.collection, campaign, requested_state=filters.state, columns=columns)
        context |= {"row": rows[0], "columns": columns}
    status = 422 if problem else 200
    page = render(request, "data/_pair_panel.html" if is_panel else "data/pair.html", context, status=status)
    return allow_images(page, scope.collection.document_format)
