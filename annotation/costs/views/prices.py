"""What each judge costs, and entering what the list of prices does not know or has wrong."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotation.audit_log.recording import record
from annotation.costs import prices as page
from annotation.costs.forms_prices import PriceForm
from annotation.permissions import Scope, action
from corpus.errors import BadInput
from judges.costs.listed_prices import list_version
from judges.costs.price_entries import PRICES
from judges.costs.price_rows import enter_price, history_of, judges_sharing, taken_over
from judges.engine.plan import judge_of
from judges.models import JudgeVersion
from judges.models.prices import PriceRow
from judges.records import Judge


@action("admin")
@require_GET
def prices(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The price that holds for each judge, and where it is from."""
    context = {"scope": scope, "section": "settings", "lines": page.judge_prices(), "list": list_version()}
    return render(request, "costs/prices.html", context)


@action("admin")
@require_http_methods(["GET", "POST"])
def price(request: HttpRequest, scope: Scope, version: int) -> HttpResponse:
    """One judge's price and what was said of it before. A change is asked about first, and then a row of its own."""
    judge = _get_judge(version)
    if request.method != "POST":
        return _render_price(request, scope, judge, PriceForm.of(judge))
    form = PriceForm(request.POST)
    away = "away" in request.POST
    if not away and not form.is_valid():
        return _render_price(request, scope, judge, form, status=422)
    wanted = {} if away else form.prices
    if "confirm" in request.POST:
        return _save_price(request, scope, judge, wanted, "" if away else form.cleaned_data["note"])
    context = {
        "scope": scope,
        "section": "settings",
        "judge": judge,
        "away": away,
        "changes": page.price_changes(judge, _told_before(judge) if away else wanted),
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
        told = _("Nothing was changed.") if change == "unchanged" else _("Saved: it holds for calls from now on.")
        messages.success(request, told)
    return redirect("prices", scope.collection.name)


def _told_before(judge: Judge) -> dict[str, float]:
    """The prices that count again when the entered one is taken away."""
    row = taken_over(provider=judge.provider, base_url=judge.base_url, model=judge.model)
    return {} if row is None else {key: getattr(row, key) for key in PRICES if getattr(row, key) is not None}


def _render_price(request: HttpRequest, scope: Scope, judge: Judge, form: PriceForm, status: int = 200) -> HttpResponse:
    rows = history_of(judge)
    context = {
        "scope": scope,
        "section": "settings",
        "line": page.judge_price(judge),
        "form": form,
        "rows": page.describe_price_rows(rows),
        "entered": judge.priced_by if judge.priced_by in ("page", "table") else "",
    }
    return render(request, "costs/price.html", context, status=status)


def _get_judge(version: int) -> Judge:
    return judge_of(get_object_or_404(JudgeVersion.objects.exclude(provider="offline"), pk=version))
