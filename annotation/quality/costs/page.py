"""The chart of the ledger page, its sentence about budgets, and the ledger as CSV. No database."""

from collections.abc import Iterator
from dataclasses import asdict

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.quality.costs.report import CostReport
from charts import Bar, Chart, draw_bars
from charts.cells import csv_line
from judges.costs.accounting import format_cost
from judges.costs.ledger import LedgerRow

# The columns of the CSV, with the field of an entry that each shows.
COLUMNS = {
    "judge": "judge",
    "model": "model",
    "role": "role",
    "round": "round",
    "outcome": "outcome",
    "calls": "calls",
    "calls_cached": "cached",
    "calls_without_price": "unpriced",
    "tokens_in": "tokens_in",
    "tokens_cached": "tokens_cached",
    "tokens_out": "tokens_out",
    "usd": "cost",
    "calls_assumed": "assumed",
    "usd_assumed": "cost_assumed",
    "tokens_written": "tokens_written",
    "tokens_reasoning": "tokens_reasoning",
}
SHOWN = 12  # Number of judges in the chart; the table has all.


def judge_cost_chart(report: CostReport) -> Chart | None:
    """Draw the bar chart of USD by judge; None without calls."""
    # Judges without a price come first, because their cost is missing from the sum.
    lines = sorted(
        report.by_judge, key=lambda judge_sum: (judge_sum.paid.usd is not None, -(judge_sum.paid.usd or 0.0))
    )[:SHOWN]
    if not lines:
        return None
    rows = []
    for line in lines:
        calls = ngettext("%(calls)s call", "%(calls)s calls", line.calls) % {"calls": f"{line.calls:,}"}
        detail = f"{calls}, {', '.join(line.paid.missing)}" if line.paid.at_least else calls
        rows.append(Bar(line.name, line.paid.usd, words=_("price unknown"), detail=detail))
    values = {"collection": report.collection.name, "campaign": report.campaign.number}
    source = _("%(collection)s, campaign %(campaign)s") % values
    summary = _("All judges: %(text)s.") % {"text": report.machine.text}
    return draw_bars("spending", _("Cost by judge"), rows, x="USD", summary=summary, source=source)


def csv_lines(entries: list[LedgerRow]) -> Iterator[str]:
    """Yield the lines of the ledger as CSV.

    `usd`: the known cost, without calls of unknown cost; empty where none is known. `usd_assumed`: the most
    that calls of unknown cost can have cost, which counts against budgets.
    """
    yield csv_line(list(COLUMNS))
    for entry in entries:
        values = asdict(entry) | {"cost_assumed": _format_usd(entry.cost_assumed)}
        values["cost"] = "" if entry.paid.usd is None else _format_usd(entry.cost)
        yield csv_line([values[field] for field in COLUMNS.values()])


def _format_usd(usd: float) -> str:
    return f"{usd:.10f}".rstrip("0").rstrip(".")


def describe_budget_left(report: CostReport) -> str:
    """Return a sentence about the remaining budgets; empty without a budget."""
    collection_budget, campaign, parts = report.caps, report.campaign, []
    if campaign.budget is not None:
        remaining = max(0.0, campaign.budget - report.spent)
        values = {"max": format_cost(remaining), "budget": format_cost(campaign.budget)}
        parts.append(_("%(max)s of the campaign's %(budget)s") % values)
    if collection_budget.left is not None:
        values = {"left": format_cost(collection_budget.left), "budget": format_cost(collection_budget.budget)}
        parts.append(_("%(left)s of the collection's %(budget)s") % values)
    if collection_budget.left_today is not None:
        values = {
            "left_today": format_cost(collection_budget.left_today),
            "daily_budget": format_cost(collection_budget.daily_budget),
            "day": f"{collection_budget.day:%-d %b}",
        }
        parts.append(_("%(left_today)s of %(daily_budget)s for today, %(day)s (UTC)") % values)
    return _("Remaining: %(join)s.") % {"join": "; ".join(parts)} if parts else ""
