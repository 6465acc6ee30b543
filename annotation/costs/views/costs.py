"""The ledger of a campaign."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from annotation.costs import page
from annotation.costs.report import cost_report
from annotation.permissions import Scope, action
from corpus.chart_downloads import download
from judges.costs.ledger import FEW_CALLS, ledger_rows
from judges.models import Campaign


@action("admin")
@require_GET
def ledger(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """What the campaign cost, by judge, round and outcome, with people's work and per correct label."""
    found = cost_report(_get_campaign(scope, campaign), most=FEW_CALLS)
    chart = page.judge_cost_chart(found)
    if file := download(request, [chart]):
        return file
    context = {
        "scope": scope,
        "section": "campaigns",
        "campaign": found.campaign,
        "found": found,
        "chart": chart,
        "left": page.describe_budget_left(found),
    }
    return render(request, "costs/ledger.html", context)


@action("admin")
@require_GET
def ledger_csv(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Every entry of the ledger."""
    row = _get_campaign(scope, campaign)
    headers = {"Content-Disposition": f'attachment; filename="{scope.collection.name}-campaign-{row.pk}-ledger.csv"'}
    return HttpResponse(
        "".join(page.csv_lines(ledger_rows(row))), content_type="text/csv; charset=utf-8", headers=headers
    )


def _get_campaign(scope: Scope, campaign: int) -> Campaign:
    known = Campaign.objects.select_related("collection")
    return get_object_or_404(known, pk=campaign, collection=scope.collection)
