"""The page of panel selection: the filters of its URL, and the contents of its tables and charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.agreement.grade_matrix import JUDGES, KnownAssessor
from annotation.agreement.measures import Pairwise
from annotation.agreement.page import format_statistic, heat_class
from annotation.quality.panels.choosing import Proposal
from annotation.quality.panels.quality import BALANCED
from annotation.quality.panels.report import MEASURES, PanelSelection, summarise_choice
from annotation.quality.panels.subsets import SIZE, SIZES_TO_CHOOSE
from charts import Chart, Dot, draw_scatter
from charts import draw_heatmap as heat_chart

RESAMPLES = 1_000
SHOWN = 5  # Number of subsets of each order on the page.


@dataclass(frozen=True, slots=True)
class PanelFilters:
    """Filters of the page, from its URL. No names: all judges that judged enough pairs."""

    names: tuple[str, ...]
    floor: float | None
    size: int = SIZE  # Number of judges on the panel.

    @property
    def query(self) -> str:
        """The filters as a query string."""
        floor = [("floor", f"{self.floor:g}")] if self.floor is not None else []
        size = [("size", str(self.size))] if self.size != SIZE else []
        return urlencode([*(("c", name) for name in self.names), *floor, *size])


def read_filters(parameters: QueryDict, assessors: Sequence[KnownAssessor]) -> PanelFilters:
    """Parse a query string. Unknown names and an invalid floor or size are ignored."""
    judges = [assessor.name for assessor in assessors if assessor.kind in JUDGES]
    requested_names = set(parameters.getlist("c"))
    try:
        floor = float(parameters.get("floor", ""))
    except ValueError:
        # NaN fails the comparison below, like a floor out of range.
        floor = float("nan")
    size = next((number for number in SIZES_TO_CHOOSE if str(number) == parameters.get("size")), SIZE)
    return PanelFilters(
        tuple(name for name in judges if name in requested_names), floor if -1 <= floor <= 1 else None, size
    )


def build_page(selection: PanelSelection, relevant_from: int) -> dict[str, Any]:
    """Return the template's context, with candidates above the floor first, the best of them first."""
    measures, panels = selection.measures, selection.panels

    def rank(position: int) -> tuple[bool, float, str]:
        value = selection.quality(position).value
        return (
            not measures.qualities[position].passes,
            -1.0 if value is None else -value,
            selection.name(position),
        )

    order = sorted(range(len(measures.qualities)), key=rank)
    orders = (
        (_("By mean kappa"), panels.by_mean_kappa),
        (_("By largest kappa"), panels.by_largest_kappa),
    )
    pairwise = {
        pair: agreement
        for agreement in measures.agreements
        for pair in ((agreement.a, agreement.b), (agreement.b, agreement.a))
    }
    names, summary = selection.names(order), summarise_choice(selection)
    source = _("%(collection)s: %(pairs)s pairs judged by all candidates") % {
        "collection": selection.collection,
        "pairs": f"{measures.pair_count:,}",
    }
    kappas = {
        selection.name(row): [pairwise[row, column].kappa.value if row != column else None for column in order]
        for row in order
    }
    return {
        "chosen": selection,
        "summary": summary,
        "measure": _(MEASURES[measures.floor.measure]),
        "by_gold": measures.floor.measure == BALANCED,
        "lines": [_candidate_line(selection, position) for position in order],
        "orders": [
            (title, [_proposed_set(selection, proposal) for proposal in sets[:SHOWN]]) for title, sets in orders if sets
        ],
        "matrix": [
            (
                selection.name(row),
                [_kappa_cell(selection, pairwise.get((row, column)), row, column, relevant_from) for column in order],
            )
            for row in order
        ],
        "names": names,
        # Query string of the self-check of all configured judges.
        "checkable": urlencode([("judge", name) for name in selection.checks]),
        "charts": (
            _candidates_chart(selection, order, source),
            heat_chart("kappas", _("Pairwise Cohen's kappa"), kappas, names, summary=" ".join(summary), source=source),
        ),
    }


def _candidate_line(selection: PanelSelection, position: int) -> dict[str, Any]:
    measures, panels, candidate = selection.measures, selection.panels, selection.material.candidates[position]
    group = next((group for group in measures.copy_groups if position in group), ())
    return {
        "candidate": candidate,
        "quality": measures.qualities[position],
        "mean": measures.mean_kappas[position],
        "copies": selection.names([member for member in group if member != position]),
        "proposed": panels.proposed is not None and position in panels.proposed.members,
        "check": selection.checks.get(candidate.judge),
    }


def _proposed_set(selection: PanelSelection, proposal: Proposal) -> dict[str, Any]:
    names = selection.names(proposal.members)
    judges = [("judge", selection.material.candidates[position].judge) for position in proposal.members]
    return {
        "names": names,
        "between": selection.names(proposal.subset.most_similar),
        "proposal": proposal,
        "without": list(zip(names, proposal.accuracies_without_member, strict=True)),
        "query": urlencode(judges) if selection.usable(proposal) else "",
    }


def _kappa_cell(
    selection: PanelSelection, pair: Pairwise | None, row: int, column: int, relevant_from: int
) -> dict[str, Any]:
    """Build the cell of two candidates in the matrix; empty on the diagonal."""
    if pair is None:
        return {}
    a, b = selection.names([row, column])
    return {
        "pair": pair,
        "a": a,
        "b": b,
        "kappa": format_statistic(pair.kappa),
        "errors": selection.error_correlation(row, column),
        "heat": heat_class(pair.kappa.value),
        "copy": any(row in group and column in group for group in selection.measures.copy_groups),
        "itself": any(row in group and column in group for group in selection.material.alike),
        # Query string of the pairs behind the cell.
        "pairs": urlencode({"a": a, "b": b, "cell": f"disagree:{relevant_from}"}),
    }


def _candidates_chart(selection: PanelSelection, order: Sequence[int], source: str) -> Chart:
    """Draw quality against mean kappa with the others: good candidates are at the upper left."""
    dots = []
    for position in order:
        value, mean = selection.quality(position).value, selection.measures.mean_kappas[position]
        if value is not None and mean is not None:
            series = _("above the floor") if selection.measures.qualities[position].passes else _("below the floor")
            dots.append(Dot(mean, value, selection.name(position), series))
    measure = _(MEASURES[selection.measures.floor.measure])
    return draw_scatter(
        "candidates",
        _("Candidates: accuracy and independence"),
        dots,
        x=_("mean kappa with other candidates"),
        y=measure,
        floor=(selection.measures.floor.value, _("floor")),
        empty=_(
            "Nothing to draw yet: no two candidates have judged the same pairs, or there is"
            " no reference to measure them against."
        ),
        summary=_(
            "%(dots)s candidates; floor: %(measure)s of %(floor_value)s. Top left: accurate"
            " and independent. Bottom left: noise."
        )
        % {"dots": len(dots), "floor_value": f"{selection.measures.floor.value:.2f}", "measure": measure},
        source=source,
    )
