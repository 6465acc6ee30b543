"""The comparison as people see it: two charts, a table, the cross table whose cells open their pairs, a simulator."""

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
    """The page from the document of annotation.quality.policies.report, and the simulator's URL."""
    campaign = document["campaign"]
    cells = [load_cell(one) for one in document["debate_by_ensemble"]]
    # Unless the simulator is asked, it shows what debate + ensemble hands over.
    asked = "simulate" in parameters
    handed = set(parameters.getlist("hand")) if asked else {cell.key for cell in cells if cell.escalated}
    # What the URL says a judgment takes and an hour costs goes before what was measured and set.
    given = {"seconds": _parse_number(parameters, "seconds"), "hourly_rate": _parse_number(parameters, "rate")}
    people = SimulatedPeople(**document["people"] | {key: value for key, value in given.items() if value is not None})
    settler = _find_resolver(document)
    lines = _policy_lines(document["policies"], settler, people)
    columns = sorted({cell.column for cell in cells}, key=column_order)
    # What is downloaded is of this page without the simulator.
    kept = {name: parameters[name] for name in ("seconds", "rate", "lara") if parameters.get(name)}
    return {
        "campaign": campaign,
        "population": document["population"],
        "measured": document["reference"] != "none",
        "settled_by": _(SETTLED_BY[settler]),
        "lines": lines,
        # The campaign's own number of rounds alone has an adjudicating judge's answers, and a campaign may have none.
        "adjudicated": any(
            line["adjudicated"] and line["adjudicated"].value is not None and line["found"]["escalated"]
            for line in lines
            if not line["reason"]
        ),
        "table": policies_table(document),
        "charts": _build_charts(document, lines),
        "query": urlencode({"campaign": campaign} | kept),
        "columns": columns,
        "rows": _crossing_grid(cells, columns, handed, campaign),
        "simulation": simulate_escalation(cells, handed, people),
        "asked": asked,
        "people": people,
        # The longest debate has the most agreements, and so the most that rest on an agent that changed sides.
        "collapsed": max((one.get("collapsed", 0) for one in document["policies"]), default=0),
    }


def load_cell(found: Mapping[str, Any]) -> CrossingCell:
    """Build a cell from its JSON."""
    return CrossingCell(**{field.name: found[field.name] for field in fields(CrossingCell)})


def _parse_number(parameters: Any, name: str) -> float | None:
    """Read a number from 0 to a million; None for anything else."""
    try:
        value = float(parameters.get(name, ""))
    except ValueError:
        return None
    return value if 0 <= value <= 1e6 else None


def _find_resolver(document: Mapping[str, Any]) -> str:
    """Find who settles the rest: people where they answered for some policy, else the reference in their place."""
    by_people = [
        one["after"][PEOPLE]["balanced_accuracy"]["value"]
        for one in document["policies"]
        if one["available"] and one["escalated"] and PEOPLE in one["after"]
    ]
    return PEOPLE if any(value is not None for value in by_people) or document["reference"] != "gold" else AS_GOLD


def _policy_lines(policies: Sequence[Mapping[str, Any]], settler: str, people: SimulatedPeople) -> list[dict[str, Any]]:
    """The lines of the table. `every`: balanced accuracy over all pairs, once the settler has settled the rest."""
    best = pareto_frontier(policies)
    lines = []
    for one in policies:
        line: dict[str, Any] = {"name": one["name"], "reason": one["reason"] or "", "best": one["name"] in best}
        line["current"] = one.get("current", False)
        if one["available"]:
            after = one["after"].get(settler)
            # People's part is at what the URL says that they cost, not at what the document has.
            money = people.cost(one["judgments"])
            total = None if money is None or one["machine"] is None else one["machine"] + money
            line["own"] = {name: Statistic(**value) for name, value in one["own"].items()}
            line["every"] = Statistic(**after["balanced_accuracy"]) if after else None
            judged = one["after"].get(ADJUDICATOR)
            line["adjudicated"] = Statistic(**judged["balanced_accuracy"]) if judged else None
            line["found"] = {**one, "people": money, "total": total}
        lines.append(line)
    return lines


def pareto_frontier(policies: Sequence[Mapping[str, Any]]) -> set[str]:
    """Names of the policies that no other beats, with less escalation as right on its own labels, or righter."""
    known = [
        (one["own"]["balanced_accuracy"]["value"], one["escalation"], one["name"])
        for one in policies
        if one["available"] and one["own"]["balanced_accuracy"]["value"] is not None
    ]
    return {
        name
        for right, load, name in known
        if not any(r >= right and e <= load and (r, e) != (right, load) for r, e, _ in known)
    }


def _build_charts(document: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> list[Chart]:
    source = f"{document['collection']}: {document['population']}"
    known = [line for line in lines if not line["reason"]]
    own: list[Dot] = []
    bill: list[Dot] = []
    for line in known:
        found, right, every = line["found"], line["own"]["balanced_accuracy"].value, line["every"]
        named = (line["name"], found["policy"], not line["best"], _("current policy") if line["current"] else "")
        if right is not None:
            own.append(Dot(100 * found["escalation"], 100 * right, *named))
        if every and every.value is not None and found["total"] is not None and found["pairs"]:
            bill.append(Dot(1000 * found["total"] / found["pairs"], 100 * every.value, *named))
    load, of_own = _("% of pairs for people"), _("balanced accuracy of own labels, %")
    cost, over_all = _("USD per 1,000 pairs, judges and people"), _("balanced accuracy of all pairs, %")
    summary = _describe_frontier(known)
    unknown = _("Nothing to draw yet: the time per judgment or the hourly rate is unknown.")
    words: dict[str, Any] = {"summary": summary, "empty": summary, "source": source}
    return [
        draw_scatter("frontier", _("Accuracy and human workload"), own, x=load, y=of_own, **words),
        draw_scatter("bill", _("Accuracy and cost"), bill, x=cost, y=over_all, empty=unknown, source=source),
    ]


def _describe_frontier(lines: Sequence[Mapping[str, Any]]) -> str:
    best = sorted((line for line in lines if line["best"]), key=lambda line: line["found"]["escalation"])
    if not best:
        return _("Nothing to draw yet: no label has been measured.")
    said = []
    for line in best:
        right, load = line["own"]["balanced_accuracy"].value, line["found"]["escalation"]
        words = _("%(line)s (%(value)s accurate, %(found)s for people)")
        said.append(words % {"line": line["name"], "value": f"{right:.1%}", "found": f"{load:.1%}"})
    return _("Labelled: the best trade-offs: %(join)s.") % {"join": "; ".join(said)}


def _crossing_grid(
    cells: Sequence[CrossingCell], columns: Sequence[str], handed: set[str], campaign: int
) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """The cross table, row by row; None where no pair has both outcomes."""
    boxes = {
        (cell.row, cell.column): {
            "cell": cell,
            "words": f"{row_label(cell.row)}, {column_label(cell.column)}",
            "handed": cell.label is None or cell.key in handed,
            "query": urlencode({"campaign": campaign, "cross": cell.key}),
        }
        for cell in cells
    }
    rows = sorted({cell.row for cell in cells}, key=row_order)
    return [(row_label(row), [boxes.get((row, column)) for column in columns]) for row in rows]


def row_label(row: str) -> str:
    """Return the name of a row, such as "agreed in round 1: relevant"."""
    return _(ROWS[row if row in ROWS else row[-1]]) % {"round": row[:-1]}


def column_label(column: str) -> str:
    """Return the name of a column, such as "5 votes yes, 0 no"."""
    if column == NONE:
        return _("no votes")
    yes, no = column.split("-")
    return _("%(yes)s votes yes, %(no)s no") % {"yes": yes, "no": no}
