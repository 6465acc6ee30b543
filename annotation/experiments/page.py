"""The page of the arms: charts and tables from the report."""

from collections.abc import Iterable, Sequence
from typing import Any

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


def build_page(found: DebateEffect, studies: Iterable[StudyFound], source: str) -> tuple[dict[str, Any], list[Chart]]:
    """The context of the page, and all its pictures; `source` stands under each that is saved."""
    sides = [(str(MOMENTS[side.moment.key]), side) for side in found.sides]
    flips = [(_("All"), found.flips.all)]
    flips += [(str(SIDES[side]), some) for side, some in found.flips.by_side.items()]
    people = [(found.names.get(one, "?"), some) for one, some in found.flips.by_person.items()]
    charts = _draw_charts(sides, flips, source)
    studied = [_build_study(one, source) for one in studies]
    page = {
        "found": found,
        "sides": sides,
        "flips": flips,
        "people": sorted(people, key=lambda named: named[0]),
        "studies": studied,
        "charts": charts,
    }
    return page, [*charts, *(chart for _study, _rows, chart in studied)]


def _draw_charts(sides: Sequence[tuple[str, ArmVotes]], flips: Sequence[tuple[str, Flips]], source: str) -> list[Chart]:
    changed = [
        bar
        for name, some in flips
        for bar in (
            _build_bar(f"{name}: {_('right to wrong')}", some.right_to_wrong),
            _build_bar(f"{name}: {_('wrong to right')}", some.wrong_to_right),
        )
    ]
    return [
        draw_bars(
            "accuracy",
            _("Right votes by what was read"),
            [_build_bar(name, side.accuracy) for name, side in sides],
            x=_("share"),
            high=1.0,
            source=source,
        ),
        draw_bars(
            "agreement",
            _("Agreement by what was read"),
            [_build_bar(name, side.agreement) for name, side in sides],
            x=_("Krippendorff's alpha (nominal), relevant or not"),
            high=1.0,
            source=source,
        ),
        draw_bars("flips", _("Minds that the debate changed"), changed, x=_("share"), high=1.0, source=source),
        draw_bars(
            "seconds",
            _("Seconds for a vote"),
            [_build_bar(name, side.seconds) for name, side in sides],
            x=_("median seconds"),
            source=source,
        ),
    ]


def _build_study(found: StudyFound, source: str) -> tuple[StudyFound, list[tuple[str, PairedRow, bool]], Chart]:
    """A study, its rows (name, figures, whether they are a difference) and its picture."""
    hidden, shown = (_("Without the debate"), found.table.hidden), (_("With the debate"), found.table.shown)
    chart = draw_bars(
        f"study-{found.study.pk}",
        _("Balanced accuracy in study %(study)s") % {"study": found.study.pk},
        [_build_bar(name, row.balanced_accuracy) for name, row in (hidden, shown)],
        x=_("balanced accuracy of the majority"),
        high=1.0,
        source=source,
    )
    return found, [(*hidden, False), (*shown, False), (_("Difference"), found.table.difference, True)], chart


def _build_bar(name: str, one: Statistic) -> Bar:
    return Bar(name, one.value, one.low, one.high, one.n, words=_("undefined"))
