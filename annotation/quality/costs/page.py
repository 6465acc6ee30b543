"""The ledger page's chart, its sentence on budgets, and the CSV of its entries. No database."""

from collections.abc import Iterator
from dataclasses import asdict

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.quality.costs.report import CostReport
from charts import Bar, Chart, draw_bars
from charts.cells import csv_line
from judges.costs.accounting import format_cost
from judges.costs.ledger import LedgerRow

# The columns of the file in their order, with the fields of an entry that stand in them.
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
SHOWN = 12  # Judges in the picture; the table has all.


def judge_cost_chart(found: CostReport) -> Chart | None:
    """Draw the bar chart of USD by judge; None where no judge was asked."""
    # Unknown prices first: what is missing from the sum must not be cut off.
    lines = sorted(found.by_judge, key=lambda one: (one.paid.usd is not None, -(one.paid.usd or 0.0)))[:SHOWN]
    if not lines:
        return None
    rows = []
    for line in lines:
        calls = ngettext("%(calls)s call", "%(calls)s calls", line.calls) % {"calls": f"{line.calls:,}"}
        detail = f"{calls}, {', '.join(line.paid.missing)}" if line.paid.at_least else calls
        rows.append(Bar(line.name, line.paid.usd, words=_("price unknown"), detail=detail))
    values = {"collection": found.collection.name, "campaign": found.campaign.number}
    source = _("%(collection)s, campaign %(campaign)s") % values
    summary = _("All judges: %(text)s.") % {"text": found.machine.text}
    return draw_bars("spending", _("Cost by judge"), rows, x="USD", summary=summary, source=source)


def csv_lines(entries: list[LedgerRow]) -> Iterator[str]:
    """The ledger as CSV; `usd` is empty where no cost is known, and leaves out calls of unknown cost.

    `usd_assumed`: what stands for those of known price in budgets, the most that they can have cost.
    """
    yield csv_line(list(COLUMNS))
    for one in entries:
        values = asdict(one) | {"cost_assumed": _format_usd(one.cost_assumed)}
        values["cost"] = "" if one.paid.usd is None else _format_usd(one.cost)
        yield csv_line([values[field] for field in COLUMNS.values()])


def _format_usd(usd: float) -> str:
    return f"{usd:.10f}".rstrip("0").rstrip(".")


def describe_budget_left(found: CostReport) -> str:
    """Describe what the budgets still allow, in a sentence; "" without a budget."""
    caps, campaign, told = found.caps, found.campaign, []
    if campaign.budget is not None:
        left = max(0.0, campaign.budget - found.spent)
        values = {"max": format_cost(left), "budget": format_cost(campaign.budget)}
        told.append(_("%(max)s of the campaign's %(budget)s") % values)
    if caps.left is not None:
        values = {"left": format_cost(caps.left), "budget": format_cost(caps.budget)}
        told.append(_("%(left)s of the collection's %(budget)s") % values)
    if caps.left_today is not None:
        values = {"left_today": format_cost(caps.left_today), "daily_budget": format_cost(caps.daily_budget)}
        values["day"] = f"{caps.day:%-d %b}"
        told.append(_("%(left_today)s of %(daily_budget)s for today, %(day)s (UTC)") % values)
    return _("Remaining: %(join)s.") % {"join": "; ".join(told)} if told else ""
