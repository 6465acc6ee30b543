"""The page of the panel: what was asked for in the URL, and what stands in its tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.agreement.grade_matrix import JUDGES, KnownAssessors
from annotation.agreement.measures import Pairwise
from annotation.agreement.page import format_statistic, heat_class
from annotation.quality.panels.choosing import Proposal
from annotation.quality.panels.quality import BALANCED
from annotation.quality.panels.report import MEASURES, Chosen, summarise_choice
from annotation.quality.panels.subsets import SIZE, SIZES_TO_CHOOSE
from charts import Chart, Dot, draw_scatter
from charts import draw_heatmap as heat_chart

RESAMPLES = 1_000
SHOWN = 5  # Sets of each order on the page; the command prints more.


@dataclass(frozen=True, slots=True)
class PanelFilters:
    """Options of the panel page, from its address. No names: every judge that judged enough."""

    names: tuple[str, ...]
    floor: float | None
    size: int = SIZE  # Judges of the panel.

    @property
    def query(self) -> str:
        """The same as a query string."""
        floor = [("floor", f"{self.floor:g}")] if self.floor is not None else []
        size = [("size", str(self.size))] if self.size != SIZE else []
        return urlencode([*(("c", name) for name in self.names), *floor, *size])


def read_filters(parameters: QueryDict, known: Sequence[KnownAssessors]) -> PanelFilters:
    """Parse a query string; names that nobody has, and a floor that is none, are left out."""
    judges = [one.name for one in known if one.kind in JUDGES]
    wanted = set(parameters.getlist("c"))
    try:
        floor = float(parameters.get("floor", ""))
    except ValueError:
        # NaN fails the comparison below, as a floor out of range does.
        floor = float("nan")
    size = next((one for one in SIZES_TO_CHOOSE if str(one) == parameters.get("size")), SIZE)
    return PanelFilters(tuple(name for name in judges if name in wanted), floor if -1 <= floor <= 1 else None, size)


def build_page(chosen: Chosen, relevant_from: int) -> dict[str, Any]:
    """Build the template's tables: passing candidates first, the best first."""
    choice = chosen.choice

    def rank(place: int) -> tuple[bool, float, str]:
        value = chosen.quality(place).value
        return not choice.qualities[place].passes, -1.0 if value is None else -value, chosen.name(place)

    order = sorted(range(len(choice.qualities)), key=rank)
    orders = ((_("By mean kappa"), choice.by_mean), (_("By largest kappa"), choice.by_largest))
    found = {pair: one for one in choice.pairwise for pair in ((one.a, one.b), (one.b, one.a))}
    names, summary = chosen.names(order), summarise_choice(chosen)
    source = _("%(collection)s: %(pairs)s pairs judged by all candidates") % {
        "collection": chosen.collection,
        "pairs": f"{choice.pairs:,}",
    }
    kappas = {chosen.name(row): [found[row, at].kappa.value if row != at else None for at in order] for row in order}
    return {
        "chosen": chosen,
        "summary": summary,
        "measure": _(MEASURES[choice.floor.measure]),
        "by_gold": choice.floor.measure == BALANCED,
        "lines": [_candidate_line(chosen, place) for place in order],
        "orders": [(title, [_proposed_set(chosen, one) for one in sets[:SHOWN]]) for title, sets in orders if sets],
        "matrix": [
            (chosen.name(row), [_kappa_cell(chosen, found.get((row, at)), row, at, relevant_from) for at in order])
            for row in order
        ],
        "names": names,
        # Query string of the self-check of all that are configured; empty where nobody is.
        "checkable": urlencode([("judge", name) for name in chosen.checks]),
        "charts": (
            _candidates_chart(chosen, order, source),
            heat_chart("kappas", _("Pairwise Cohen's kappa"), kappas, names, summary=" ".join(summary), source=source),
        ),
    }


def _candidate_line(chosen: Chosen, place: int) -> dict[str, Any]:
    choice, candidate = chosen.choice, chosen.found.candidates[place]
    group = next((group for group in choice.copies if place in group), ())
    return {
        "candidate": candidate,
        "quality": choice.qualities[place],
        "mean": choice.means[place],
        "copies": chosen.names([one for one in group if one != place]),
        "proposed": choice.proposed is not None and place in choice.proposed.members,
        "check": chosen.checks.get(candidate.judge),
    }


def _proposed_set(chosen: Chosen, one: Proposal) -> dict[str, Any]:
    names = chosen.names(one.members)
    judges = [("judge", chosen.found.candidates[place].judge) for place in one.members]
    return {
        "names": names,
        "between": chosen.names(one.subset.between),
        "proposal": one,
        "without": list(zip(names, one.without, strict=True)),
        "query": urlencode(judges) if chosen.usable(one) else "",
    }


def _kappa_cell(chosen: Chosen, pair: Pairwise | None, row: int, at: int, relevant_from: int) -> dict[str, Any]:
    """Build the cell of two candidates in the matrix; empty where it is one with itself."""
    if pair is None:
        return {}
    a, b = chosen.names([row, at])
    return {
        "pair": pair,
        "a": a,
        "b": b,
        "kappa": format_statistic(pair.kappa),
        "errors": chosen.error_correlation(row, at),
        "heat": heat_class(pair.kappa.value),
        "copy": any(row in group and at in group for group in chosen.choice.copies),
        "itself": any(row in group and at in group for group in chosen.found.alike),
        # Query string of the pairs behind the cell.
        "pairs": urlencode({"a": a, "b": b, "cell": f"disagree:{relevant_from}"}),
    }


def _candidates_chart(chosen: Chosen, order: Sequence[int], source: str) -> Chart:
    """Draw quality against kappa with the others: a panel wants the upper left."""
    dots = []
    for place in order:
        value, mean = chosen.quality(place).value, chosen.choice.means[place]
        if value is not None and mean is not None:
            series = _("above the floor") if chosen.choice.qualities[place].passes else _("below the floor")
            dots.append(Dot(mean, value, chosen.name(place), series))
    measure = _(MEASURES[chosen.choice.floor.measure])
    return draw_scatter(
        "candidates",
        _("Candidates: accuracy and independence"),
        dots,
        x=_("mean kappa with other candidates"),
        y=measure,
        floor=(chosen.choice.floor.value, _("floor")),
        empty=_(
            "Nothing to draw yet: no two candidates have judged the same pairs, or there is"
            " no reference to measure them against."
        ),
        summary=_(
            "%(dots)s candidates; floor: %(measure)s of %(floor_value)s. Top left: accurate"
            " and independent. Bottom left: noise."
        )
        % {"dots": len(dots), "floor_value": f"{chosen.choice.floor.value:.2f}", "measure": measure},
        source=source,
    )
