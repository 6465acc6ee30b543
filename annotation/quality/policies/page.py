"""The page that compares policies: two charts, a table, the cross table with links to its pairs, and a simulator."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
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
from annotation.quality.policies.documents import CellDocument, ComparisonDocument, LatencyDocument, PolicyDocument
from annotation.quality.policies.measures import Classwise
from annotation.quality.policies.replay import ADJUDICATOR, AS_GOLD, NO_REFERENCE, PEOPLE, REFERENCE_GRADES
from annotation.quality.policies.tables import policies_table
from annotation.quality.policies.trade_offs import TradeOff, find_best_trade_offs
from charts import Chart, Dot, draw_scatter
from charts.downloads import DownloadTable

# Clauses on how the escalated pairs get their labels, by who resolves them.
RESOLUTION_CLAUSES = {
    PEOPLE: gettext_noop("people judge them"),
    ADJUDICATOR: gettext_noop("an adjudicating judge decides them"),
    AS_GOLD: gettext_noop("the reference grades decide them"),
}
# Labels of the rows of the cross table. The row of an agreement, such as "1y", has the label of its last letter.
ROW_LABELS = {
    OPEN: gettext_noop("no agreement"),
    LOST: gettext_noop("turn missing"),
    NONE: gettext_noop("no debate"),
    "y": gettext_noop("Round %(round)s · relevant"),
    "n": gettext_noop("Round %(round)s · not relevant"),
}


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    """What a policy achieves on the stored answers of the campaign, and what it costs."""

    pair_count: int
    escalated_share: float  # Share of the pairs that go to people.
    escalated_count: int  # Number of these pairs.
    failed_count: int  # Number of pairs with neither a label nor a task for people.
    call_count: int
    own_labels: Classwise  # Accuracy of the labels that the policy decides without people.
    all_labels: Statistic | None  # Balanced accuracy once the escalated pairs are resolved; None if they cannot be.
    adjudicated_labels: Statistic | None  # The same if an adjudicating judge resolves them; None if there is none.
    judges_cost: float | None  # USD; None if a price is unknown.
    people_cost: float | None  # USD; None if the time of a judgment or the hourly rate is unknown.
    latency_ms: LatencyDocument | None  # None if no pair has calls.

    @property
    def total_cost(self) -> float | None:
        """Cost of judges and people in USD; None if one of the two is unknown."""
        if self.judges_cost is None or self.people_cost is None:
            return None
        return self.judges_cost + self.people_cost

    @property
    def is_adjudicated(self) -> bool:
        """Whether an adjudicating judge has resolved escalated pairs of the policy."""
        adjudicated = self.adjudicated_labels
        return self.escalated_count > 0 and adjudicated is not None and adjudicated.value is not None


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A row of the table of policies."""

    name: str  # The policy with its parameters, such as "debate, 2 rounds".
    policy: str  # The policy alone, such as "debate".
    is_current: bool  # Whether it is the campaign's own policy.
    is_best_trade_off: bool  # Whether no other policy is superior to it (see TradeOff).
    unavailable_reason: str  # Why there are no figures, not translated; empty if there are figures.
    figures: PolicyFigures | None


@dataclass(frozen=True, slots=True)
class PolicyTable:
    """The table of policies."""

    rows: list[PolicyRow]
    resolution_clause: str  # How the escalated pairs get their labels.
    has_adjudication: bool  # Whether the table has a column for an adjudicating judge.
    download_table: DownloadTable


@dataclass(frozen=True, slots=True)
class CrossingBox:
    """A cell of the cross table as the page shows it."""

    cell: CrossingCell
    description: str  # The row and the column in words.
    is_for_people: bool  # Whether people judge the pairs of the cell in the simulation.
    pairs_query_string: str  # The query string of the page that lists the pairs of the cell.


@dataclass(frozen=True, slots=True)
class CrossingRow:
    """A row of the cross table, with a box for each column; None for a cell without pairs."""

    label: str
    boxes: Sequence[CrossingBox | None]


@dataclass(frozen=True, slots=True)
class CrossTable:
    """The cross table: outcomes of the debate by counts of votes."""

    columns: list[str]  # Votes for yes and for no, such as "3-2"; "none" for pairs without votes.
    rows: list[CrossingRow]


@dataclass(frozen=True, slots=True)
class Simulator:
    """The simulator: which cells people judge, and what follows from it."""

    cells_are_chosen: bool  # Whether the visitor chose the cells for people; if not, debate + ensemble chooses them.
    people: SimulatedPeople
    outcome: EscalationOutcome


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """The contents of the page."""

    campaign_number: int
    population: str  # Sentence about the pairs that the figures are of, without a full stop.
    is_measured: bool  # Whether there are reference grades or answers of people.
    flipped_count: int  # Number of pairs in whose debate an agent changed sides without a new quote.
    query_string: str  # For downloads: campaign, time, rate and LARA of this page, but not the chosen cells.
    charts: list[Chart]
    policy_table: PolicyTable
    cross_table: CrossTable
    simulator: Simulator


def build_page(document: ComparisonDocument, parameters: QueryDict) -> ComparisonPage:
    """Build the page from the comparison, and from the parameters of the page's URL.

    The parameters are `simulate` if the visitor has chosen cells, `hand` for the key of each chosen cell, `seconds` and
    `rate` for the time and the hourly rate of people, and `lara` if the comparison includes the policy LARA.

    1. Read the cells of the cross table, and which of them people judge in the simulation.
    2. Read the time and the cost of people.
    3. Choose who resolves the escalated pairs, and build the table of policies.
    4. Put the tables, the charts and the simulation together.
    """
    # 1. Until the visitor chooses cells, people judge those that debate + ensemble escalates.
    cells = [load_cell(cell_document) for cell_document in document["debate_by_ensemble"]]
    cells_are_chosen = "simulate" in parameters
    if cells_are_chosen:
        cells_for_people = set(parameters.getlist("hand"))
    else:
        cells_for_people = {cell.key for cell in cells if cell.escalated}

    # 2. Values in the URL take precedence over the measured time and over the rate of the collection.
    people = SimulatedPeople(**document["people"])
    seconds = _parse_number(parameters, "seconds")
    if seconds is not None:
        people = replace(people, seconds=seconds)
    hourly_rate = _parse_number(parameters, "rate")
    if hourly_rate is not None:
        people = replace(people, hourly_rate=hourly_rate)

    # 3. The figures depend on the cost of people.
    # People resolve the escalated pairs if they answered for some policy, or if there are no reference grades either:
    # then their answers are missing.
    people_answered = any(
        policy["after"][PEOPLE]["balanced_accuracy"]["value"] is not None
        for policy in document["policies"]
        if policy["available"] and policy["escalated"] and PEOPLE in policy["after"]
    )
    resolver = PEOPLE if people_answered or document["reference"] != REFERENCE_GRADES else AS_GOLD
    best_trade_offs = find_best_trade_offs(document["policies"])
    names_of_best = {trade_off.name for trade_off in best_trade_offs}
    policy_rows = [
        PolicyRow(
            name=policy["name"],
            policy=policy["policy"],
            is_current=policy.get("current", False),
            is_best_trade_off=policy["name"] in names_of_best,
            unavailable_reason=policy["reason"] or "",
            figures=_read_figures(policy, resolver, people) if policy["available"] else None,
        )
        for policy in document["policies"]
    ]

    # 4. The query string keeps the time, the rate and LARA, but not the chosen cells.
    page_parameters = {name: parameters[name] for name in ("seconds", "rate", "lara") if parameters.get(name)}
    return ComparisonPage(
        campaign_number=document["campaign"],
        population=document["population"],
        is_measured=document["reference"] != NO_REFERENCE,
        # Each longer debate contains the shorter ones, so the largest count is that of the longest. In the JSON, a pair
        # with a change of sides is called collapsed.
        flipped_count=max((policy.get("collapsed", 0) for policy in document["policies"]), default=0),
        query_string=urlencode({"campaign": document["campaign"]} | page_parameters),
        charts=_build_charts(
            policy_rows, best_trade_offs, source=f"{document['collection']}: {document['population']}"
        ),
        policy_table=PolicyTable(
            rows=policy_rows,
            resolution_clause=_(RESOLUTION_CLAUSES[resolver]),
            # An adjudicating judge has answered, if at all, only for policies with the campaign's own number of rounds.
            has_adjudication=any(row.figures.is_adjudicated for row in policy_rows if row.figures),
            download_table=policies_table(document),
        ),
        cross_table=_build_cross_table(cells, cells_for_people, document["campaign"]),
        simulator=Simulator(
            cells_are_chosen=cells_are_chosen,
            people=people,
            outcome=simulate_escalation(cells, cells_for_people, people),
        ),
    )


def load_cell(document: CellDocument) -> CrossingCell:
    """Build a cell of the cross table from its JSON, which also contains some of its properties."""
    field_names = {field.name for field in fields(CrossingCell)}
    return CrossingCell(**{name: value for name, value in document.items() if name in field_names})  # type: ignore[arg-type]


def _parse_number(parameters: QueryDict, name: str) -> float | None:
    """Return a parameter as a number from 0 to a million; None if it is missing, or anything else."""
    try:
        value = float(parameters.get(name, ""))
    except ValueError:
        return None
    return value if 0 <= value <= 1e6 else None


def _read_figures(policy: PolicyDocument, resolver: str, people: SimulatedPeople) -> PolicyFigures:
    """Return the figures of an available policy. The cost of people follows from `people`, not from the document."""
    own_labels = policy["own"]
    resolved_labels = policy["after"].get(resolver)
    adjudicated_labels = policy["after"].get(ADJUDICATOR)
    return PolicyFigures(
        pair_count=policy["pairs"],
        escalated_share=policy["escalation"],
        escalated_count=policy["escalated"],
        failed_count=policy["failed"],
        call_count=policy["calls"],
        own_labels=Classwise(
            relevant=Statistic(**own_labels["recall_relevant"]),
            not_relevant=Statistic(**own_labels["recall_not_relevant"]),
            balanced=Statistic(**own_labels["balanced_accuracy"]),
        ),
        all_labels=Statistic(**resolved_labels["balanced_accuracy"]) if resolved_labels else None,
        adjudicated_labels=Statistic(**adjudicated_labels["balanced_accuracy"]) if adjudicated_labels else None,
        judges_cost=policy["machine"],  # The JSON calls all judges together the machine.
        people_cost=people.cost(policy["judgments"]),
        latency_ms=policy["latency_ms"],
    )


def _build_charts(policy_rows: Sequence[PolicyRow], best_trade_offs: Sequence[TradeOff], *, source: str) -> list[Chart]:
    """Draw accuracy by the workload of people, and accuracy by cost. Only the best trade-offs have a label."""
    workload_dots: list[Dot] = []
    cost_dots: list[Dot] = []
    for row in policy_rows:
        figures = row.figures
        if figures is None:
            continue
        own_accuracy = figures.own_labels.balanced.value
        if own_accuracy is not None:
            workload_dots.append(_build_dot(row, x=100 * figures.escalated_share, y=100 * own_accuracy))
        accuracy = figures.all_labels.value if figures.all_labels else None
        if accuracy is not None and figures.total_cost is not None and figures.pair_count:
            cost_per_1000_pairs = 1000 * figures.total_cost / figures.pair_count
            cost_dots.append(_build_dot(row, x=cost_per_1000_pairs, y=100 * accuracy))
    trade_offs_sentence = _describe_trade_offs(best_trade_offs)
    return [
        draw_scatter(
            "frontier",
            _("Accuracy and human workload"),
            workload_dots,
            x=_("% of pairs for people"),
            y=_("balanced accuracy of own labels, %"),
            summary=trade_offs_sentence,
            empty=trade_offs_sentence,
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


def _build_dot(row: PolicyRow, *, x: float, y: float) -> Dot:
    return Dot(
        x=x,
        y=y,
        label=row.name,
        series=row.policy,
        quiet=not row.is_best_trade_off,
        mark=_("current policy") if row.is_current else "",
    )


def _describe_trade_offs(best_trade_offs: Sequence[TradeOff]) -> str:
    """Return a sentence that lists the best trade-offs, those with the least work for people first."""
    if not best_trade_offs:
        return _("Nothing to draw yet: no label has been measured.")
    descriptions = [
        _("%(policy)s (%(accuracy)s accurate, %(escalation)s for people)")
        % {
            "policy": trade_off.name,
            "accuracy": f"{trade_off.accuracy:.1%}",
            "escalation": f"{trade_off.escalated_share:.1%}",
        }
        for trade_off in sorted(best_trade_offs, key=lambda trade_off: trade_off.escalated_share)
    ]
    return _("The labelled points are the best trade-offs: %(policies)s.") % {"policies": "; ".join(descriptions)}


def _build_cross_table(
    cells: Sequence[CrossingCell], cells_for_people: AbstractSet[str], campaign_number: int
) -> CrossTable:
    """Build the cross table. `cells_for_people` are keys of cells; people also judge the cells without a label."""
    boxes: dict[tuple[str, str], CrossingBox] = {}
    for cell in cells:
        # A column such as "3-2" is 3 of 5 votes for relevant.
        column = _("no votes")
        if cell.column != NONE:
            votes, against = cell.column.split("-")
            column = _("votes %(votes)s-%(against)s") % {"votes": votes, "against": against}
        boxes[cell.row, cell.column] = CrossingBox(
            cell=cell,
            description=f"{format_row(cell.row)} · {column}",
            is_for_people=cell.label is None or cell.key in cells_for_people,
            pairs_query_string=urlencode({"campaign": campaign_number, "cross": cell.key}),
        )
    columns = sorted({cell.column for cell in cells}, key=column_order)
    rows = sorted({cell.row for cell in cells}, key=row_order)
    return CrossTable(
        columns=columns,
        rows=[CrossingRow(format_row(row), [boxes.get((row, column)) for column in columns]) for row in rows],
    )


def format_row(row: str) -> str:
    """Return the label of a row of the cross table, such as "Round 1 · relevant" for "1y"."""
    if row in ROW_LABELS:
        return _(ROW_LABELS[row])
    return _(ROW_LABELS[row[-1]]) % {"round": row[:-1]}
