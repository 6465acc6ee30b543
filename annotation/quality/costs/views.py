"""The ledger of a campaign; what each judge costs, and entering what the list of prices does not know or has wrong."""

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
from judges.costs.ledger import FEW_CALLS, ledger_rows
from judges.costs.listed_prices import list_version
from judges.costs.price_entries import PRICES
from judges.costs.price_rows import enter_price, history_of, judges_sharing, taken_over
from judges.costs.prices import PAID_BY_CALL
from judges.engine.plan import judge_of, records_of
from judges.models import Campaign, JudgeVersion
from judges.models.prices import PriceRow
from judges.records import Judge


@action("admin")
@require_GET
def ledger(request: HttpRequest, scope: Scope, campaign: int) -> HttpResponse:
    """Show the campaign's cost by judge, round and outcome, people's work, per correct label."""
    found = cost_report(_get_campaign(scope, campaign), most=FEW_CALLS)
    chart = page.judge_cost_chart(found)
    if file := download(request, [chart]):
        return file
    context = {
        "scope": scope,
        "campaign": found.campaign,
        "found": found,
        "chart": chart,
        "left": page.describe_budget_left(found),
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
    known = Campaign.objects.select_related("collection")
    return numbered_or_404(known, scope.collection, campaign, _("Campaign not found."))


@action("admin")
@require_GET
def prices(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The price that holds for each judge, and where it is from."""
    judges = records_of(JudgeVersion.objects.filter(is_current=True).order_by("name"))
    lines = [judge_price(judge) for judge in judges]
    context = {"scope": scope, "lines": lines, "list": list_version()}
    return render(request, "costs/prices.html", context)


@action("admin")
@require_http_methods(["GET", "POST"])
def price(request: HttpRequest, scope: Scope, version: int) -> HttpResponse:
    """Show or change a judge's price, with its history. A confirmed change appends a row."""
    # Offline judges are free, search services are paid by the call: neither has token prices.
    judge = judge_of(
        get_object_or_404(JudgeVersion.objects.exclude(provider__in=("offline", *PAID_BY_CALL)), pk=version)
    )
    if request.method != "POST":
        return _render_price(request, scope, judge, PriceForm.of(judge))
    form = PriceForm(request.POST)
    # `away` takes the entered price back, so the fields of the form are not read.
    away = "away" in request.POST
    if not away and not form.is_valid():
        return _render_price(request, scope, judge, form, status=422)
    wanted = {} if away else form.prices
    # A price holds for all judges of the model on the site: the page before has named them.
    if "confirm" in request.POST:
        return _save_price(request, scope, judge, wanted, "" if away else form.cleaned_data["note"])
    # The prices that count again when the entered one is taken away.
    row = taken_over(provider=judge.provider, base_url=judge.base_url, model=judge.model) if away else None
    before = {key: value for key in PRICES if row and (value := getattr(row, key)) is not None}
    context = {
        "scope": scope,
        "judge": judge,
        "away": away,
        "changes": price_changes(judge, before if away else wanted),
        "others": judges_sharing(judge),
        "hidden": [(name, request.POST.get(name, "")) for name in form.fields],
    }
    return render(request, "costs/price_confirm.html", context)


def _save_price(request: HttpRequest, scope: Scope, judge: Judge, wanted: dict[str, float], note: str) -> HttpResponse:
    try:
        with transaction.atomic():
            change = enter_price(
                provider=judge.provider,
                base_url=judge.base_url,
                model=judge.model,
                prices=wanted,
                source=PriceRow.Source.PAGE,
                note=note,
            )
            said = [f"{key} {value:g}" for key, value in wanted.items()]
            record(scope, "price.changed", provider=judge.provider, model=judge.model, prices=said)
    except BadInput as error:
        messages.error(request, _("Nothing was changed: %(error)s.") % {"error": error})
    else:
        told = _("Nothing was changed.") if change == "unchanged" else _("Saved. Applies to new calls.")
        messages.success(request, told)
    return redirect("prices", scope.collection.name)


def _render_price(request: HttpRequest, scope: Scope, judge: Judge, form: PriceForm, status: int = 200) -> HttpResponse:
    context = {
        "scope": scope,
        "line": judge_price(judge),
        "form": form,
        "rows": [(row, describe_prices({key: getattr(row, key) for key in PRICES})) for row in history_of(judge)],
        "entered": judge.priced_by if judge.priced_by in ("page", "table") else "",
    }
    return render(request, "costs/price.html", context, status=status)
