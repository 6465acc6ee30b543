"""Pages of the ledger of a campaign and of judges' prices, with the form that sets a price."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.quality.costs import page
from annotation.quality.costs.prices import PriceForm, describe_prices, judge_price, price_changes
from annotation.quality.costs.report import cost_report
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from judges.costs.judge_records import judge_of, records_of
from judges.costs.ledger import FEW_CALLS, ledger_rows
from judges.costs.listed_prices import list_version
from judges.costs.price_entries import PRICES
from judges.costs.price_rows import enter_price, history_of, taken_over
from judges.costs.prices import PAID_BY_CALL
from judges.models import Campaign, JudgeVersion
from judges.models.prices import PriceRow
from judges.records import Judge


@action("results")
@require_GET
def ledger(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Show the campaign's cost by judge, round and outcome, of people's work, and per correct label."""
    report = cost_report(_get_campaign(scope, campaign), most=FEW_CALLS)
    chart = page.judge_cost_chart(report)
    if file := download(request, [chart]):
        return file
    context = {
        "scope": scope,
        "campaign": report.campaign,
        "found": report,
        "chart": chart,
        "left": page.describe_budget_left(report),
    }
    return render(request, "costs/ledger.html", context)


@action("admin")
@require_GET
def ledger_csv(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Download a campaign's ledger as CSV."""
    row = _get_campaign(scope, campaign)
    name = f"{scope.collection.name}-campaign-{row.number}-ledger.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(
        "".join(page.csv_lines(ledger_rows(row))), content_type="text/csv; charset=utf-8", headers=headers
    )


def _get_campaign(scope: Scope, campaign: int) -> Campaign:
    campaigns = Campaign.objects.select_related("collection")
    return numbered_or_404(campaigns, scope.collection, campaign, _("Campaign not found."))


@action("admin")
@require_GET
def prices(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the current price of each judge, and its source."""
    judges = records_of(JudgeVersion.objects.filter(is_current=True).order_by("name"))
    lines = [judge_price(judge) for judge in judges]
    context = {"scope": scope, "lines": lines, "list": list_version()}
    return render(request, "costs/prices.html", context)


@action("admin")
@require_http_methods(["GET", "POST"])
def price(request: HttpRequest, scope: Scope, version: int) -> HttpResponse:
    """Show a judge's price and its history; POST shows the changes of a new price, and saves it once confirmed."""
    # Offline judges are free and search services are paid by the call, so they have no token prices.
    judge = judge_of(
        get_object_or_404(JudgeVersion.objects.exclude(provider__in=("offline", *PAID_BY_CALL)), pk=version)
    )
    if request.method != "POST":
        return _render_price(request, scope, judge, PriceForm.of(judge))
    form = PriceForm(request.POST)
    # `away` removes the entered price, so the fields of the form are not read.
    is_removal = "away" in request.POST
    if not is_removal and not form.is_valid():
        return _render_price(request, scope, judge, form, status=422)
    new_prices = {} if is_removal else form.prices
    # A price applies to all judges of the model on the site, which the page has listed before.
    if "confirm" in request.POST:
        try:
            with transaction.atomic():
                change = enter_price(
                    provider=judge.provider,
                    base_url=judge.base_url,
                    model=judge.model,
                    prices=new_prices,
                    source=PriceRow.Source.PAGE,
                    note="" if is_removal else form.cleaned_data["note"],
                )
                price_texts = [f"{key} {value:g}" for key, value in new_prices.items()]
                record(scope, "price.changed", provider=judge.provider, model=judge.model, prices=price_texts)
        except BadInput as error:
            messages.error(request, _("Nothing was changed: %(error)s.") % {"error": error})
        else:
            message = _("Nothing was changed.") if change == "unchanged" else _("Saved. Applies to new calls.")
            messages.success(request, message)
        return redirect("prices", scope.collection.name)
    # After a removal the price applies that the entered one replaced.
    row = taken_over(provider=judge.provider, base_url=judge.base_url, model=judge.model) if is_removal else None
    replaced = {key: value for key in PRICES if row and (value := getattr(row, key)) is not None}
    # The other current judges to which a price of this judge's model and address applies.
    same = JudgeVersion.objects.filter(is_current=True, provider=judge.provider, model=judge.model)
    same = same.filter(base_url=judge.base_url) if judge.base_url else same
    context = {
        "scope": scope,
        "judge": judge,
        "away": is_removal,
        "changes": price_changes(judge, replaced if is_removal else new_prices),
        "others": list(same.exclude(name=judge.name).order_by("name").values_list("name", flat=True)),
        "hidden": [(name, request.POST.get(name, "")) for name in form.fields],
    }
    return render(request, "costs/price_confirm.html", context)


def _render_price(request: HttpRequest, scope: Scope, judge: Judge, form: PriceForm, status: int = 200) -> HttpResponse:
    context = {
        "scope": scope,
        "line": judge_price(judge),
        "form": form,
        "rows": [(row, describe_prices({key: getattr(row, key) for key in PRICES})) for row in history_of(judge)],
        "entered": judge.priced_by if judge.priced_by in ("page", "table") else "",
    }
    return render(request, "costs/price.html", context, status=status)
