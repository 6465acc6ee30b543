"""The comparison of policies on its page: two charts, a table, the cross table with links to pairs, a simulator."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.quality.policies.crossing import (
    LOST,
    NONE,
    OPEN,
    CrossingCell,
    SimulatedPeople,
    column_order,
    row_order,
    simulate_escalation,
)
from annotation.quality.policies.replay import ADJUDICATOR, AS_GOLD, PEOPLE
from annotation.quality.policies.tables import policies_table
from charts import Chart, Dot, draw_scatter

SETTLED_BY = {
    PEOPLE: gettext_noop("people judge them"),
    ADJUDICATOR: gettext_noop("an adjudicating judge decides them"),
    AS_GOLD: gettext_noop("the reference grades decide them"),
}
# By the row of the cross table, or the last letter of one that agreed.
ROWS = {
    OPEN: gettext_noop("no agreement"),
    LOST: gettext_noop("turn missing"),
    NONE: gettext_noop("no debate"),
    "y": gettext_noop("agreed in round %(round)s: relevant"),
    "n": gettext_noop("agreed in round %(round)s: not relevant"),
}


def build_page(document: Mapping[str, Any], parameters: Any) -> dict[str, Any]:
    """Return the context of the page. `document`: of report.evaluate_policies; `parameters`: of the page's URL."""
    campaign = document["campaign"]
    cells = [load_cell(cell) for cell in document["debate_by_ensemble"]]
    # Without parameters the simulator shows what debate + ensemble escalates.
    is_simulation = "simulate" in parameters
    handed = set(parameters.getlist("hand")) if is_simulation else {cell.key for cell in cells if cell.escalated}
    # The time and cost of the URL take precedence over what was measured and set.
    overrides = {"seconds": _parse_number(parameters, "seconds"), "hourly_rate": _parse_number(parameters, "rate")}
    people = SimulatedPeople(
        **document["people"] | {key: value for key, value in overrides.items() if value is not None}
    )
    # The rest is resolved by people if they answered for some policy, else by the reference in their place.
    has_people = any(
        policy["after"][PEOPLE]["balanced_accuracy"]["value"] is not None
        for policy in document["policies"]
        if policy["available"] and policy["escalated"] and PEOPLE in policy["after"]
    )
    resolver = PEOPLE if has_people or document["reference"] != "gold" else AS_GOLD
    lines = _policy_lines(document["policies"], resolver, people)
    columns = sorted({cell.column for cell in cells}, key=column_order)
    # Downloads are of this page without the simulator.
    query = {name: parameters[name] for name in ("seconds", "rate", "lara") if parameters.get(name)}
    return {
        "campaign": campaign,
        "population": document["population"],
        "measured": document["reference"] != "none",
        "settled_by": _(SETTLED_BY[resolver]),
        "lines": lines,
        # Only the campaign's own number of rounds has answers of an adjudicating judge, if any.
        "adjudicated": any(
            line["adjudicated"] and line["adjudicated"].value is not None and line["found"]["escalated"]
            for line in lines
            if not line["reason"]
        ),
        "table": policies_table(document),
        "charts": _build_charts(document, lines),
        "query": urlencode({"campaign": campaign} | query),
        "columns": columns,
        "rows": _crossing_grid(cells, columns, handed, campaign),
        "simulation": simulate_escalation(cells, handed, people),
        "asked": is_simulation,
        "people": people,
        # The longest debate has the most agreements, and so the most that rest on a change of sides.
        "collapsed": max((policy.get("collapsed", 0) for policy in document["policies"]), default=0),
    }


def load_cell(values: Mapping[str, Any]) -> CrossingCell:
    """Build a cell from its JSON."""
    return CrossingCell(**{field.name: values[field.name] for field in fields(CrossingCell)})


def _parse_number(parameters: Any, name: str) -> float | None:
    """Read a number from 0 to a million; None for anything else."""
    try:
        value = float(parameters.get(name, ""))
    except ValueError:
        return None
    return value if 0 <= value <= 1e6 else None


def _policy_lines(
    policies: Sequence[Mapping[str, Any]], resolver: str, people: SimulatedPeople
) -> list[dict[str, Any]]:
    """Return the lines of the table. `every`: balanced accuracy over all pairs once the escalated ones are resolved."""
    best = pareto_frontier(policies)
    lines = []
    for policy in policies:
        line: dict[str, Any] = {
            "name": policy["name"],
            "reason": policy["reason"] or "",
            "best": policy["name"] in best,
        }
        line["current"] = policy.get("current", False)
        if policy["available"]:
            after = policy["after"].get(resolver)
            # The cost of people is that of the URL, not that of the document.
            people_cost = people.cost(policy["judgments"])
            total = None if people_cost is None or policy["machine"] is None else policy["machine"] + people_cost
            line["own"] = {name: Statistic(**value) for name, value in policy["own"].items()}
            line["every"] = Statistic(**after["balanced_accuracy"]) if after else None
            judged = policy["after"].get(ADJUDICATOR)
            line["adjudicated"] = Statistic(**judged["balanced_accuracy"]) if judged else None
            line["found"] = {**policy, "people": people_cost, "total": total}
        lines.append(line)
    return lines


def pareto_frontier(policies: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of the policies to which no other is superior in escalation and accuracy of its own labels."""
    measured = [
        (policy["own"]["balanced_accuracy"]["value"], policy["escalation"], policy["name"])
        for policy in policies
        if policy["available"] and policy["own"]["balanced_accuracy"]["value"] is not None
    ]
    return {
        name
        for accuracy, escalation, name in measured
        if not any(
            other_accuracy >= accuracy
            and other_escalation <= escalation
            and (other_accuracy, other_escalation) != (accuracy, escalation)
            for other_accuracy, other_escalation, _ in measured
        )
    }


def _build_charts(document: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> list[Chart]:
    source = f"{document['collection']}: {document['population']}"
    available_lines = [line for line in lines if not line["reason"]]
    own_dots: list[Dot] = []
    cost_dots: list[Dot] = []
    for line in available_lines:
        figures, own, overall = line["found"], line["own"]["balanced_accuracy"].value, line["every"]
        labels = (line["name"], figures["policy"], not line["best"], _("current policy") if line["current"] else "")
        if own is not None:
            own_dots.append(Dot(100 * figures["escalation"], 100 * own, *labels))
        if overall and overall.value is not None and figures["total"] is not None and figures["pairs"]:
            cost_dots.append(Dot(1000 * figures["total"] / figures["pairs"], 100 * overall.value, *labels))
    load, own_axis = _("% of pairs for people"), _("balanced accuracy of own labels, %")
    cost, overall_axis = _("USD per 1,000 pairs, judges and people"), _("balanced accuracy of all pairs, %")
    summary = _describe_frontier(available_lines)
    unknown = _("Nothing to draw yet: the time per judgment or the hourly rate is unknown.")
    words: dict[str, Any] = {"summary": summary, "empty": summary, "source": source}
    return [
        draw_scatter("frontier", _("Accuracy and human workload"), own_dots, x=load, y=own_axis, **words),
        draw_scatter("bill", _("Accuracy and cost"), cost_dots, x=cost, y=overall_axis, empty=unknown, source=source),
    ]


def _describe_frontier(lines: Sequence[Mapping[str, Any]]) -> str:
    best = sorted((line for line in lines if line["best"]), key=lambda line: line["found"]["escalation"])
    if not best:
        return _("Nothing to draw yet: no label has been measured.")
    parts = []
    for line in best:
        accuracy, escalation = line["own"]["balanced_accuracy"].value, line["found"]["escalation"]
        words = _("%(line)s (%(value)s accurate, %(found)s for people)")
        parts.append(words % {"line": line["name"], "value": f"{accuracy:.1%}", "found": f"{escalation:.1%}"})
    return _("Labelled: the best trade-offs: %(join)s.") % {"join": "; ".join(parts)}


def _crossing_grid(
    cells: Sequence[CrossingCell], columns: Sequence[str], handed: set[str], campaign: int
) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """Return the cross table by row; None for a cell without pairs."""
    boxes = {}
    for cell in cells:
        votes = _("no votes")
        if cell.column != NONE:
            yes, no = cell.column.split("-")
            votes = _("%(yes)s votes yes, %(no)s no") % {"yes": yes, "no": no}
        boxes[cell.row, cell.column] = {
            "cell": cell,
            "words": f"{row_label(cell.row)}, {votes}",
            "handed": cell.label is None or cell.key in handed,
            "query": urlencode({"campaign": campaign, "cross": cell.key}),
        }
    rows = sorted({cell.row for cell in cells}, key=row_order)
    return [(row_label(row), [boxes.get((row, column)) for column in columns]) for row in rows]


def row_label(row: str) -> str:
    """Return the name of a row, such as "agreed in round 1: relevant"."""
    return _(ROWS[row if row in ROWS else row[-1]]) % {"round": row[:-1]}
