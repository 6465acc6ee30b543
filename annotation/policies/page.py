"""The comparison as people see it: two charts, a table, the cross table whose cells open their pairs, a simulator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.policies.crossing import (
    LOST,
    NONE,
    OPEN,
    CrossingCell,
    Simulation,
    column_order,
    row_order,
    simulate_escalation,
)
from annotation.policies.people import SimulatedPeople
from annotation.policies.replay import ADJUDICATOR, AS_GOLD, PEOPLE
from charts import Chart, Dot, draw_scatter

SETTLED_BY = {
    PEOPLE: gettext_noop("people settled the rest"),
    ADJUDICATOR: gettext_noop("a judge settled the rest"),
    AS_GOLD: gettext_noop("the reference settled the rest"),
}
SHORT = {OPEN: gettext_noop("never agreed"), LOST: gettext_noop("a turn was lost"), NONE: gettext_noop("no debate")}


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """One policy in the table, with the figures of its document."""

    name: str
    reason: str
    own: Mapping[str, Statistic]
    # Balanced accuracy over all pairs, by whoever settles the rest (`Page.settled_by`).
    every: Statistic | None
    found: Mapping[str, Any]
    best: bool  # No other policy is both righter and easier on people.


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """Everything of the page."""

    campaign: int
    population: str
    measured: bool
    settled_by: str
    lines: tuple[PolicyLine, ...]
    charts: tuple[Chart, ...]
    query: str  # Query string of this page without the simulator, for what is downloaded.
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[dict[str, Any] | None, ...]], ...]
    simulation: Simulation
    asked: bool  # The simulator was asked; else it shows what debate + ensemble does.
    people: SimulatedPeople
    collapsed: int  # Agreements of the campaign's longest debate that rest on a collapse.


def build_page(document: Mapping[str, Any], parameters: Any) -> PolicyPage:
    """From the document of annotation.policies.report, and what the URL asks the simulator."""
    cells = [load_cell(one) for one in document["debate_by_ensemble"]]
    asked = "simulate" in parameters
    handed = set(parameters.getlist("hand")) if asked else {cell.key for cell in cells if cell.escalated}
    people = _parse_people(SimulatedPeople(**document["people"]), parameters)
    settler = _find_resolver(document)
    rows = _policy_lines(document["policies"], settler, people)
    return PolicyPage(
        campaign=document["campaign"],
        population=document["population"],
        measured=document["reference"] != "none",
        settled_by=_(SETTLED_BY[settler]),
        lines=rows,
        charts=tuple(_build_charts(document, rows)),
        query=urlencode(
            {"campaign": document["campaign"]}
            | {n: parameters[n] for n in ("seconds", "rate", "lara") if parameters.get(n)}
        ),
        columns=tuple(sorted({cell.column for cell in cells}, key=column_order)),
        rows=_crossing_grid(cells, handed, document["campaign"]),
        simulation=simulate_escalation(cells, handed, people),
        asked=asked,
        people=people,
        collapsed=max((one.get("collapsed", 0) for one in document["policies"]), default=0),
    )


def load_cell(found: Mapping[str, Any]) -> CrossingCell:
    """A cell from its JSON."""
    return CrossingCell(**{field.name: found[field.name] for field in fields(CrossingCell)})


def _parse_people(known: SimulatedPeople, parameters: Any) -> SimulatedPeople:
    """What the URL says a judgment takes and an hour costs, in place of what was measured and set."""
    seconds, rate = (_parse_number(parameters.get(name, "")) for name in ("seconds", "rate"))
    return replace(
        known,
        seconds=known.seconds if seconds is None else seconds,
        hourly_rate=known.hourly_rate if rate is None else rate,
    )


def _parse_number(text: str) -> float | None:
    """A number from 0 to a million; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1e6 else None


def _find_resolver(document: Mapping[str, Any]) -> str:
    """Who settles the rest: people where they answered for some policy, else the reference in their place."""
    by_people = [
        one["after"][PEOPLE]["balanced_accuracy"]["value"]
        for one in document["policies"]
        if one["available"] and one["escalated"] and PEOPLE in one["after"]
    ]
    return PEOPLE if any(value is not None for value in by_people) or document["reference"] != "gold" else AS_GOLD


def _policy_lines(
    policies: Sequence[Mapping[str, Any]], settler: str, people: SimulatedPeople
) -> tuple[PolicyLine, ...]:
    best = pareto_frontier(policies)
    lines = []
    for one in policies:
        if not one["available"]:
            lines.append(PolicyLine(one["name"], one["reason"], {}, None, one, False))
            continue
        own = {name: Statistic(**value) for name, value in one["own"].items()}
        after = one["after"].get(settler)
        every = Statistic(**after["balanced_accuracy"]) if after else None
        lines.append(PolicyLine(one["name"], "", own, every, _price_people(one, people), one["name"] in best))
    return tuple(lines)


def _price_people(one: Mapping[str, Any], people: SimulatedPeople) -> Mapping[str, Any]:
    """With people's part at what the URL says that they cost."""
    money = people.cost(one["judgments"])
    known = money is not None and one["machine"] is not None
    return {**one, "people": money, "total": one["machine"] + money if known else None}


def pareto_frontier(policies: Sequence[Mapping[str, Any]]) -> set[str]:
    """Names of the policies that no other beats: none is as right on its own labels with less escalation, or righter
    with as little."""
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


def _build_charts(document: Mapping[str, Any], lines: Sequence[PolicyLine]) -> list[Chart]:
    source = f"{document['collection']}: {document['population']}"
    known = [line for line in lines if not line.reason]
    own = [
        Dot(
            100 * line.found["escalation"],
            100 * line.own["balanced_accuracy"].value,
            line.name,
            line.found["policy"],
            not line.best,
        )
        for line in known
        if line.own["balanced_accuracy"].value is not None
    ]
    bill = [
        Dot(
            1000 * line.found["total"] / line.found["pairs"],
            100 * line.every.value,
            line.name,
            line.found["policy"],
            not line.best,
        )
        for line in known
        if line.every and line.every.value is not None and line.found["total"] is not None and line.found["pairs"]
    ]
    return [
        draw_scatter(
            "frontier",
            _("Right and left to people"),
            own,
            x=_("% of pairs that people get"),
            y=_("% balanced accuracy of own labels"),
            summary=_describe_frontier(known),
            source=source,
        ),
        draw_scatter(
            "bill",
            _("Right and paid for"),
            bill,
            x=_("USD for 1,000 pairs, judges and people"),
            y=_("% balanced accuracy over all pairs"),
            summary="" if bill else _("Nothing to draw yet: what a judgment takes, or an hour costs, is not known."),
            source=source,
        ),
    ]


def _describe_frontier(lines: Sequence[PolicyLine]) -> str:
    best = sorted((line for line in lines if line.best), key=lambda line: line.found["escalation"])
    if not best:
        return _("Nothing to draw yet: no label is measured.")
    said = [
        _("%(line)s (%(value)s right, %(found)s to people)")
        % {
            "line": line.name,
            "value": f"{line.own['balanced_accuracy'].value:.1%}",
            "found": f"{line.found['escalation']:.1%}",
        }
        for line in best
    ]
    return _("Named are the policies that no other beats: %(join)s.") % {"join": "; ".join(said)}


def _crossing_grid(
    cells: Sequence[CrossingCell], handed: set[str], campaign: int
) -> tuple[tuple[str, tuple[dict[str, Any] | None, ...]], ...]:
    columns = sorted({cell.column for cell in cells}, key=column_order)
    boxes = {(cell.row, cell.column): _crossing_box(cell, handed, campaign) for cell in cells}
    rows = sorted({cell.row for cell in cells}, key=row_order)
    return tuple((row_label(row), tuple(boxes.get((row, column)) for column in columns)) for row in rows)


def _crossing_box(cell: CrossingCell, handed: set[str], campaign: int) -> dict[str, Any]:
    words = f"{row_label(cell.row)}, {column_label(cell.column)}"
    return {
        "cell": cell,
        "words": words,
        "handed": cell.label is None or cell.key in handed,
        "query": urlencode({"campaign": campaign, "cross": cell.key}),
    }


def row_label(row: str) -> str:
    """ "agreed in round 1: relevant"."""
    if row in SHORT:
        return _(SHORT[row])
    if row.endswith("y"):
        return _("agreed in round %(round)s: relevant") % {"round": row[:-1]}
    return _("agreed in round %(round)s: not relevant") % {"round": row[:-1]}


def column_label(column: str) -> str:
    """ "5 votes yes, 0 no"."""
    if column == NONE:
        return _("no votes")
    yes, no = column.split("-")
    return _("%(yes)s votes yes, %(no)s no") % {"yes": yes, "no": no}
