"""The page of the arms: charts and tables from the report."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.agreement.measures import Statistic
from annotation.experiments.flips import Flips
from annotation.experiments.paired import PairedRow
from annotation.experiments.report import DebateEffect, StudyFound
from annotation.experiments.votes import ArmVotes
from charts import Bar, Chart, draw_bars

MOMENTS = {
    "hidden": gettext_lazy("Debate hidden"),
    "reveal-first": gettext_lazy("First vote, before the reveal"),
    "reveal-final": gettext_lazy("Final vote, after the reveal"),
    "shown": gettext_lazy("Debate shown"),
}
SIDES = {
    "for": gettext_lazy("To “relevant” (for)"),
    "against": gettext_lazy("To “not relevant” (against)"),
}


@dataclass(frozen=True, slots=True)
class SideRow:
    """A line of the table of the arms."""

    name: str
    side: ArmVotes
    seconds: Statistic


@dataclass(frozen=True, slots=True)
class FlipRow:
    """A line of the table of changed minds."""

    name: str
    flips: Flips


@dataclass(frozen=True, slots=True)
class StudyShown:
    """A study with its three lines and its picture."""

    found: StudyFound
    # Name, figures, and whether they are a difference.
    rows: tuple[tuple[str, PairedRow, bool], ...]
    chart: Chart


@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """Everything of the page."""

    found: DebateEffect
    sides: tuple[SideRow, ...]
    flips: tuple[FlipRow, ...]
    people: tuple[FlipRow, ...]
    studies: tuple[StudyShown, ...]
    charts: Mapping[str, Chart]

    @property
    def all_charts(self) -> list[Chart]:
        """For the downloads."""
        return [*self.charts.values(), *(one.chart for one in self.studies)]


def build_page(found: DebateEffect, studies: Iterable[StudyFound], source: str) -> ExperimentPage:
    """Tables and charts; `source` stands under every picture that is saved."""
    timed = found.times.by_moment
    sides = tuple(SideRow(str(MOMENTS[s.moment.key]), s, timed[s.moment.key]) for s in found.sides)
    flips = (
        FlipRow(_("All"), found.flips.all),
        *(FlipRow(str(SIDES[side]), some) for side, some in found.flips.by_side.items()),
    )
    people = tuple(FlipRow(found.names.get(one, "?"), some) for one, some in found.flips.by_person.items())
    return ExperimentPage(
        found=found,
        sides=sides,
        flips=flips,
        people=tuple(sorted(people, key=lambda row: row.name)),
        studies=tuple(_build_study(one, source) for one in studies),
        charts=_draw_charts(sides, flips, source),
    )


def _draw_charts(sides: tuple[SideRow, ...], flips: tuple[FlipRow, ...], source: str) -> dict[str, Chart]:
    return {
        "accuracy": draw_bars(
            "accuracy",
            _("Right votes by what was read"),
            [_build_bar(row.name, row.side.accuracy) for row in sides],
            x=_("share"),
            high=1.0,
            source=source,
        ),
        "agreement": draw_bars(
            "agreement",
            _("Agreement by what was read"),
            [_build_bar(row.name, row.side.agreement) for row in sides],
            x=_("Krippendorff's alpha (nominal), relevant or not"),
            high=1.0,
            source=source,
        ),
        "flips": draw_bars(
            "flips",
            _("Minds that the debate changed"),
            [
                _build_bar(f"{row.name}: {name}", value)
                for row in flips
                for name, value in (
                    (_("right to wrong"), row.flips.right_to_wrong),
                    (_("wrong to right"), row.flips.wrong_to_right),
                )
            ],
            x=_("share"),
            high=1.0,
            source=source,
        ),
        "seconds": draw_bars(
            "seconds",
            _("Seconds for a vote"),
            [_build_bar(row.name, row.seconds) for row in sides],
            x=_("median seconds"),
            source=source,
        ),
    }


def _build_study(found: StudyFound, source: str) -> StudyShown:
    table = found.table
    rows = (
        (_("Without the debate"), table.hidden, False),
        (_("With the debate"), table.shown, False),
        (_("Difference"), table.difference, True),
    )
    chart = draw_bars(
        f"study-{found.study.pk}",
        _("Balanced accuracy in study %(study)s") % {"study": found.study.pk},
        [_build_bar(name, row.balanced) for name, row, is_difference in rows if not is_difference],
        x=_("balanced accuracy of the majority"),
        high=1.0,
        source=source,
    )
    return StudyShown(found, rows, chart)


def _build_bar(name: str, one: Statistic) -> Bar:
    return Bar(name, one.value, one.low, one.high, one.n, words=_("undefined"))
