"""The page that compares policies: two charts, a table, the cross table with links to its pairs, and a simulator."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.quality.policies.crossing import (
    LOST,
    NONE,
    OPEN,
    CrossingCell,
    EscalationOutcome,
    SimulatedPeople,
    column_order,
    row_order,
    simulate_escalation,
)
from annotation.quality.policies.measures import Classwise
from annotation.quality.policies.replay import ADJUDICATOR, AS_GOLD, PEOPLE
from annotation.quality.policies.tables import policies_table
from charts import Chart, Dot, draw_scatter
from charts.downloads import DownloadTable

# How the escalated pairs get their labels, by the key of "after" in the document.
RESOLUTION_CLAUSES = {
    PEOPLE: gettext_noop("people judge them"),
    ADJUDICATOR: gettext_noop("an adjudicating judge decides them"),
    AS_GOLD: gettext_noop("the reference grades decide them"),
}
# Labels of the rows of the cross table. Rows of agreements, such as "1y", have their last letter as the key.
ROW_LABELS = {
    OPEN: gettext_noop("no agreement"),
    LOST: gettext_noop("turn missing"),
    NONE: gettext_noop("no debate"),
    "y": gettext_noop("agreed in round %(round)s: relevant"),
    "n": gettext_noop("agreed in round %(round)s: not relevant"),
}
Document = Mapping[str, Any]  # JSON of report.evaluate_policies, or the part of it that a parameter is named after.


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    """What a policy achieves on the campaign's stored answers, and what it costs."""

    pairs: int
    escalated: int  # Pairs that go to people.
    escalation: float  # The same as a share of the pairs.
    failed: int  # Pairs with neither a label nor a task for people.
    calls: int
    own_labels: Classwise  # Accuracy of the labels that the policy gives itself.
    all_pairs: Statistic | None  # Balanced accuracy once the escalated pairs are resolved; None if they cannot be.
    adjudicated: Statistic | None  # The same if an adjudicating judge resolves them; None if there is none.
    judges_cost: float | None  # USD; None if a price is unknown.
    people_cost: float | None  # USD; None if the time of a judgment or the hourly rate is unknown.
    latency_ms: Mapping[str, float] | None  # As replay.measure_latency returns it; None if no pair has calls.

    @property
    def total_cost(self) -> float | None:
        """Cost of judges and people in USD; None if one of the two is unknown."""
        if self.judges_cost is None or self.people_cost is None:
            return None
        return self.judges_cost + self.people_cost


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """A row of the table of policies."""

    name: str  # The policy with its parameters, such as "debate, 2 rounds".
    policy: str  # The policy alone, such as "debate".
    is_current: bool  # Whether it is the campaign's own policy.
    is_on_frontier: bool  # Whether it is among the best trade-offs (find_pareto_frontier).
    unavailable_because: str  # Untranslated reason why there are no figures; empty if there are.
    figures: PolicyFigures | None


@dataclass(frozen=True, slots=True)
class CrossingBox:
    """A cell of the cross table as the page shows it."""

    cell: CrossingCell
    description: str  # Row and column in words.
    is_for_people: bool  # Whether people judge the pairs of the cell in the simulation.
    query: str  # Query string of the list of the cell's pairs.


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """The contents of the page."""

    campaign: int  # Number of the campaign.
    population: str  # Sentence about the pairs that the figures are of, without a full stop.
    is_measured: bool  # Whether there are reference grades or answers of people.
    collapsed: int  # Pairs in whose debate an agent changed sides without a new quote.
    resolution: str  # Clause on how the table's escalated pairs get their labels.
    lines: list[PolicyLine]
    has_adjudication: bool  # Whether the table has a column for an adjudicating judge.
    table: DownloadTable
    charts: list[Chart]
    query: str  # Query string of this page without the simulator, for downloads.
    columns: list[str]  # Columns of the cross table, as CrossingCell names them.
    rows: list[tuple[str, list[CrossingBox | None]]]  # Label and boxes of each row; None for a cell without pairs.
    is_simulation: bool  # Whether the visitor chose the cells for people; if not, debate + ensemble chooses them.
    simulation: EscalationOutcome
    people: SimulatedPeople


def build_page(document: Document, parameters: QueryDict) -> ComparisonPage:
    """Build the page from what report.evaluate_policies returns and from the parameters of the page's URL.

    1. Read the cells of the cross table, and which of them people judge in the simulation.
    2. Read the time and the cost of people.
    3. Choose who resolves the escalated pairs, and build the lines of the table.
    4. Put tables, charts and simulation together.
    """
    # 1. Until the visitor chooses cells, the simulator shows those that debate + ensemble escalates.
    cells = [load_cell(values) for values in document["debate_by_ensemble"]]
    is_simulation = "simulate" in parameters
    if is_simulation:
        cells_for_people = set(parameters.getlist("hand"))
    else:
        cells_for_people = {cell.key for cell in cells if cell.escalated}

    # 2. Values in the URL take precedence over the measured time and the rate of the collection.
    people = SimulatedPeople(**document["people"])
    seconds = _parse_number(parameters, "seconds")
    if seconds is not None:
        people = replace(people, seconds=seconds)
    hourly_rate = _parse_number(parameters, "rate")
    if hourly_rate is not None:
        people = replace(people, hourly_rate=hourly_rate)

    # 3. The lines depend on the cost of people.
    resolver = _choose_resolver(document)
    lines = _build_lines(document["policies"], resolver, people)

    # 4.
    columns = sorted({cell.column for cell in cells}, key=column_order)
    page_parameters = {name: parameters[name] for name in ("seconds", "rate", "lara") if parameters.get(name)}
    return ComparisonPage(
        campaign=document["campaign"],
        population=document["population"],
        is_measured=document["reference"] != "none",
        # The longest debate has the most agreements, and so the most that rest on a change of sides.
        collapsed=max((policy.get("collapsed", 0) for policy in document["policies"]), default=0),
        resolution=_(RESOLUTION_CLAUSES[resolver]),
        lines=lines,
        # An adjudicating judge has answered, if at all, only for policies with the campaign's own number of rounds.
        has_adjudication=any(_is_adjudicated(line.figures) for line in lines if line.figures),
        table=policies_table(document),
        charts=_build_charts(document, lines),
        query=urlencode({"campaign": document["campaign"]} | page_parameters),
        columns=columns,
        rows=_build_crossing_rows(cells, columns, cells_for_people, document["campaign"]),
        is_simulation=is_simulation,
        simulation=simulate_escalation(cells, cells_for_people, people),
        people=people,
    )


def load_cell(values: Document) -> CrossingCell:
    """Build a cell of the cross table from its JSON."""
    return CrossingCell(**{field.name: values[field.name] for field in fields(CrossingCell)})


def _parse_number(parameters: QueryDict, name: str) -> float | None:
    """Return a parameter as a number from 0 to a million; None if it is missing, or anything else."""
    try:
        value = float(parameters.get(name, ""))
    except ValueError:
        return None
    return value if 0 <= value <= 1e6 else None


def _choose_resolver(document: Document) -> str:
    """Return who resolves the escalated pairs: people if they answered for some policy, else the reference grades.

    Without reference grades it is people too, whose answers are then missing.
    """
    people_answered = any(
        policy["after"][PEOPLE]["balanced_accuracy"]["value"] is not None
        for policy in document["policies"]
        if policy["available"] and policy["escalated"] and PEOPLE in policy["after"]
    )
    return PEOPLE if people_answered or document["reference"] != "gold" else AS_GOLD


def _build_lines(policies: Sequence[Document], resolver: str, people: SimulatedPeople) -> list[PolicyLine]:
    frontier = find_pareto_frontier(policies)
    return [
        PolicyLine(
            name=policy["name"],
            policy=policy["policy"],
            is_current=policy.get("current", False),
            is_on_frontier=policy["name"] in frontier,
            unavailable_because=policy["reason"] or "",
            figures=_read_figures(policy, resolver, people) if policy["available"] else None,
        )
        for policy in policies
    ]


def _read_figures(policy: Document, resolver: str, people: SimulatedPeople) -> PolicyFigures:
    """Return the figures of an available policy. The cost of people follows from `people`, not from the document."""
    own = policy["own"]
    resolved = policy["after"].get(resolver)
    adjudicated = policy["after"].get(ADJUDICATOR)
    return PolicyFigures(
        pairs=policy["pairs"],
        escalated=policy["escalated"],
        escalation=policy["escalation"],
        failed=policy["failed"],
        calls=policy["calls"],
        own_labels=Classwise(
            relevant=Statistic(**own["recall_relevant"]),
            not_relevant=Statistic(**own["recall_not_relevant"]),
            balanced=Statistic(**own["balanced_accuracy"]),
        ),
        all_pairs=Statistic(**resolved["balanced_accuracy"]) if resolved else None,
        adjudicated=Statistic(**adjudicated["balanced_accuracy"]) if adjudicated else None,
        judges_cost=policy["machine"],
        people_cost=people.cost(policy["judgments"]),
        latency_ms=policy["latency_ms"],
    )


def _is_adjudicated(figures: PolicyFigures) -> bool:
    """Return whether an adjudicating judge resolved escalated pairs of the policy."""
    return figures.escalated > 0 and figures.adjudicated is not None and figures.adjudicated.value is not None


def find_pareto_frontier(policies: Iterable[Document]) -> set[str]:
    """Return the names of the measured policies that are best trade-offs of accuracy and escalation.

    They are those to which no other policy is superior, that is, at least as good in the balanced accuracy
    of its own labels and in the share of pairs that it escalates, and better in one of the two.
    """
    measured_policies = [
        (policy["name"], policy["own"]["balanced_accuracy"]["value"], policy["escalation"])
        for policy in policies
        if policy["available"] and policy["own"]["balanced_accuracy"]["value"] is not None
    ]
    return {
        name
        for name, accuracy, escalation in measured_policies
        if not any(
            other_accuracy >= accuracy
            and other_escalation <= escalation
            and (other_accuracy, other_escalation) != (accuracy, escalation)
            for _name, other_accuracy, other_escalation in measured_policies
        )
    }


def _build_charts(document: Document, lines: Sequence[PolicyLine]) -> list[Chart]:
    """Draw accuracy by the workload of people, and accuracy by cost. Points off the frontier have no label."""
    workload_dots: list[Dot] = []
    cost_dots: list[Dot] = []
    for line in lines:
        figures = line.figures
        if figures is None:
            continue
        mark = _("current policy") if line.is_current else ""
        own_accuracy = figures.own_labels.balanced.value
        if own_accuracy is not None:
            workload_dots.append(
                Dot(
                    x=100 * figures.escalation,
                    y=100 * own_accuracy,
                    label=line.name,
                    series=line.policy,
                    quiet=not line.is_on_frontier,
                    mark=mark,
                )
            )
        accuracy = figures.all_pairs.value if figures.all_pairs else None
        if accuracy is not None and figures.total_cost is not None and figures.pairs:
            cost_dots.append(
                Dot(
                    x=1000 * figures.total_cost / figures.pairs,
                    y=100 * accuracy,
                    label=line.name,
                    series=line.policy,
                    quiet=not line.is_on_frontier,
                    mark=mark,
                )
            )
    source = f"{document['collection']}: {document['population']}"
    summary = _describe_frontier(lines)
    return [
        draw_scatter(
            "frontier",
            _("Accuracy and human workload"),
            workload_dots,
            x=_("% of pairs for people"),
            y=_("balanced accuracy of own labels, %"),
            summary=summary,
            empty=summary,
            source=source,
        ),
        draw_scatter(
            "bill",
            _("Accuracy and cost"),
            cost_dots,
            x=_("USD per 1,000 pairs, judges and people"),
            y=_("balanced accuracy of all pairs, %"),
            empty=_("Nothing to draw yet: the time per judgment or the hourly rate is unknown."),
            source=source,
        ),
    ]


def _describe_frontier(lines: Sequence[PolicyLine]) -> str:
    """Return a sentence that lists the best trade-offs, those with the least work for people first."""
    trade_offs = [
        (line.figures.escalation, line.figures.own_labels.balanced.value, line.name)
        for line in lines
        if line.is_on_frontier and line.figures
    ]
    if not trade_offs:
        return _("Nothing to draw yet: no label has been measured.")
    descriptions = [
        _("%(policy)s (%(accuracy)s accurate, %(escalation)s for people)")
        % {"policy": name, "accuracy": f"{accuracy:.1%}", "escalation": f"{escalation:.1%}"}
        for escalation, accuracy, name in sorted(trade_offs, key=lambda trade_off: trade_off[0])
    ]
    return _("The labelled points are the best trade-offs: %(policies)s.") % {"policies": "; ".join(descriptions)}


def _build_crossing_rows(
    cells: Sequence[CrossingCell], columns: Sequence[str], cells_for_people: AbstractSet[str], campaign: int
) -> list[tuple[str, list[CrossingBox | None]]]:
    """Return the label and the boxes of each row of the cross table; None for a cell without pairs.

    `cells_for_people` are keys of cells. People also judge the cells without a label.
    """
    boxes: dict[tuple[str, str], CrossingBox] = {}
    for cell in cells:
        if cell.column == NONE:
            votes = _("no votes")
        else:
            yes, no = cell.column.split("-")
            votes = _("%(yes)s votes yes, %(no)s no") % {"yes": yes, "no": no}
        boxes[cell.row, cell.column] = CrossingBox(
            cell=cell,
            description=f"{format_row(cell.row)}, {votes}",
            is_for_people=cell.label is None or cell.key in cells_for_people,
            query=urlencode({"campaign": campaign, "cross": cell.key}),
        )
    rows = sorted({cell.row for cell in cells}, key=row_order)
    return [(format_row(row), [boxes.get((row, column)) for column in columns]) for row in rows]


def format_row(row: str) -> str:
    """Return the label of a row of the cross table, such as "agreed in round 1: relevant" for "1y"."""
    if row in ROW_LABELS:
        return _(ROW_LABELS[row])
    return _(ROW_LABELS[row[-1]]) % {"round": row[:-1]}
