"""Download tables of the comparison of policies and of the debate study, from their JSON."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.quality.policies.replay import ADJUDICATOR, AS_GOLD, PEOPLE
from charts.downloads import Cell, DownloadTable, Figure

RECALLS = ("recall_not_relevant", "recall_relevant", "balanced_accuracy")
RESOLVERS = {
    PEOPLE: gettext_noop("people"),
    ADJUDICATOR: gettext_noop("an adjudicating judge"),
    AS_GOLD: gettext_noop("the reference"),
}
LATENCIES = ("summed", "wall", "mean_summed", "mean_wall")
Document = Mapping[str, Any]


def policies_table(document: Document) -> DownloadTable:
    """Return the table of policies: own labels, all pairs by who resolves the rest, workload, cost and latency.

    DREAM tables 1, 2 and 11.
    """
    policies = [policy for policy in document["policies"] if policy["available"]]
    # Columns without any value are left out.
    resolvers = [
        resolver
        for resolver in RESOLVERS
        if any(_value(policy["after"].get(resolver)) is not None for policy in policies)
    ]
    header = [_("policy"), *_recall_names(_("own labels"))]
    for resolver in resolvers:
        header += _recall_names(_("all pairs, the rest completed by %(settler)s") % {"settler": _(RESOLVERS[resolver])})
    header += [_("escalation"), _("calls"), _("judges, USD"), _("people, USD")]
    header += [_("median latency, ms"), _("median latency in parallel, ms")]
    header += [_("mean latency, ms"), _("mean latency in parallel, ms")]
    rows: list[tuple[Cell, ...]] = []
    for policy in document["policies"]:
        if not policy["available"]:
            rows.append((policy["name"], *[None] * (len(header) - 1)))
            continue
        latency = policy["latency_ms"] or {}
        cells = [_recalls(policy["own"]), *(_recalls(policy["after"].get(resolver)) for resolver in resolvers)]
        costs = (Figure(policy["escalation"]), policy["calls"], policy["machine"], policy["people"])
        rows.append((policy["name"], *chain.from_iterable(cells), *costs, *map(latency.get, LATENCIES)))
    title = _("Policies on %(population)s") % {"population": document["population"]}
    return DownloadTable("policies", title, tuple(header), tuple(rows))


def study_tables(document: Document) -> list[DownloadTable]:
    """Return the tables of a debate study; a table without rows is left out.

    `debates`: every debate setting after each number of rounds (DREAM tables 10, 13, 14, 15);
    `settled`: over all pairs, by who resolves the rest (table 2); `persistence` (table 12); `orders`
    (table 9).
    """
    campaigns, setting = document["campaigns"], (_("campaign"), _("setting"))
    debates = DownloadTable(
        "debates",
        _("Ways to debate on %(name)s") % {"name": document["collection"]},
        (*setting, _("rounds"), *_recall_names(), _("escalation"), _("pairs")),
        tuple(
            (*_name(campaign), str(row["rounds"]), *_recalls(row), Figure(row["escalation"]), row["pairs"])
            for campaign in campaigns
            for row in campaign["rounds"]
        ),
        3,
    )
    resolved = DownloadTable(
        "settled",
        _("All pairs of %(name)s, once the escalated ones are completed") % {"name": document["collection"]},
        (*setting, _("rounds"), _("completed by"), *_recall_names()),
        tuple(
            (*_name(campaign), str(len(campaign["rounds"])), _(RESOLVERS[resolver]), *_recalls(measured))
            for campaign in campaigns
            for resolver, measured in campaign["after"].items()
            if _value(measured) is not None
        ),
        4,
    )
    persistence = DownloadTable(
        "persistence",
        _("Agreements of round 1 in later rounds on %(name)s") % {"name": document["collection"]},
        (*setting, _("round"), _("persistence"), _("spurious consensus"), _("cases"), _("consensus")),
        tuple(
            (
                *(*_name(campaign), str(row["round"])),
                *(Figure(row["persistence"]), Figure(row["spurious_rate"]), row["cases"], row["agreed"]),
            )
            for campaign in campaigns
            for row in campaign["persistence"] or ()
        ),
        3,
    )
    order_rows: list[tuple[Cell, ...]] = []
    for comparison in document["orders"]:
        numbers = f"{comparison['relevant_first']}, {comparison['irrelevant_first']}"
        counts = comparison["counts"]
        total = {label: sum(row[label] for row in counts.values()) for label in ("not_relevant", "relevant")}
        rows = {
            _("not relevant"): counts["not_relevant"],
            _("relevant"): counts["relevant"],
            _("total"): total,
        }
        for title, row in rows.items():
            order_rows.append((numbers, title, row["not_relevant"], row["relevant"], sum(row.values())))
    orders = DownloadTable(
        "orders",
        _("Labels by the order of the stances on %(name)s") % {"name": document["collection"]},
        (_("campaigns"), _("relevant first"), _("irrelevant first: not relevant"), _("relevant"), _("total")),
        tuple(order_rows),
        2,
    )
    return [table for table in (debates, resolved, persistence, orders) if table.rows]


def _name(campaign: Document) -> tuple[str, str]:
    return str(campaign["campaign"]), campaign["name"]


def _recall_names(of: str = "") -> list[str]:
    names = (_("recall of not relevant"), _("recall of relevant"), _("balanced accuracy"))
    return [f"{name}, {of}" if of else name for name in names]


def _recalls(measured: Document | None) -> list[Cell]:
    return [Figure(measured[name]["value"] if measured else None) for name in RECALLS]


def _value(measured: Document | None) -> float | None:
    return measured["balanced_accuracy"]["value"] if measured else None
