"""The ledger of a campaign, and the caps of a collection."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.audit_log.recording import record
from annotation.costs import page
from annotation.costs.forms import NAMES, MoneyForm
from annotation.costs.report import report
from annotation.data.views.settings import settings_page
from annotation.permissions import Scope, action
from corpus.chart_downloads import download
from corpus.collections.configure import configure
from judges.costs.ledger import FEW_CALLS, entries
from judges.models import Campaign


@action("admin")
@require_GET
def ledger(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """What the campaign cost, by judge, round and outcome, with people's work and per correct label."""
    found = report(_campaign(scope, campaign), most=FEW_CALLS)
    chart = page.spending(found)
    if file := download(request, [chart]):
        return file
    context = {
        "scope": scope,
        "section": "campaigns",
        "campaign": found.campaign,
        "found": found,
        "chart": chart,
        "left": page.left_words(found),
    }
    return render(request, "money/ledger.html", context)


@action("admin")
@require_GET
def ledger_csv(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Every entry of the ledger."""
    row = _campaign(scope, campaign)
    headers = {"Content-Disposition": f'attachment; filename="{scope.collection.name}-campaign-{row.pk}-ledger.csv"'}
    return HttpResponse("".join(page.csv(entries(row))), content_type="text/csv; charset=utf-8", headers=headers)


@action("admin")
@require_POST
def money_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """What an hour costs and what judges may cost; an empty field takes it away."""
    form = MoneyForm(request.POST)
    if not form.is_valid():
        return settings_page(request, scope, money=form, status=422)
    wanted = {name: form.cleaned_data[name] for name in NAMES}
    with transaction.atomic():
        changed = configure(scope.collection, wanted)
        record(scope, "settings.money", **wanted)
    messages.success(request, _("Saved: it holds from now on.") if changed else _("Nothing was changed."))
    return redirect("settings", scope.collection.name)


def _campaign(scope: Scope, campaign: int) -> Campaign:
    known = Campaign.objects.select_related("collection")
    return get_object_or_404(known, pk=campaign, collection=scope.collection)
