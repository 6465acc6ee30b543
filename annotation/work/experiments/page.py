"""The page of the arms: charts and tables from the report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.work.experiments.report import StudyFound
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

# Named figures of the report, as JSON has them.
Rows = Sequence[tuple[str, Mapping[str, Any]]]


def build_page(
    found: Mapping[str, Any], studies: Iterable[StudyFound], source: str
) -> tuple[dict[str, Any], list[Chart]]:
    """The context of the page, and all its pictures; `source` stands under each that is saved."""
    sides = [(str(MOMENTS[side["moment"]]), side) for side in found["moments"]]
    flips = [(_("All"), found["flips"]["all"])]
    flips += [(str(SIDES[side]), some) for side, some in found["flips"]["by_side"].items()]
    people = [(some["name"] or "?", some) for some in found["flips"]["by_person"]]
    right = [(name, side["accuracy"]) for name, side in sides]
    agreed = [(name, side["agreement"]) for name, side in sides]
    seconds = [(name, side["seconds"]) for name, side in sides]
    changed = []
    for name, some in flips:
        changed.append((f"{name}: {_('correct to wrong')}", some["right_to_wrong"]))
        changed.append((f"{name}: {_('wrong to correct')}", some["wrong_to_right"]))
    alpha = _("Krippendorff's alpha (nominal), relevant or not")
    charts = [
        _draw_statistics("accuracy", _("Correct votes by debate condition"), right, source, x=_("share")),
        _draw_statistics("agreement", _("Agreement by debate condition"), agreed, source, x=alpha),
        _draw_statistics("flips", _("Votes changed by the debate"), changed, source, x=_("share")),
        _draw_statistics("seconds", _("Seconds per vote"), seconds, source, x=_("median seconds"), high=None),
    ]
    studied = []
    for one in studies:
        # Its rows: name, figures, whether they are a difference.
        hidden, shown = (_("Without the debate"), one.table.hidden), (_("With the debate"), one.table.shown)
        chart = _draw_statistics(
            f"study-{one.study.number}",
            _("Balanced accuracy in study %(study)s") % {"study": one.study.number},
            [(name, asdict(row.balanced_accuracy)) for name, row in (hidden, shown)],
            source,
            x=_("balanced accuracy of the majority"),
        )
        rows = [(*hidden, False), (*shown, False), (_("Difference"), one.table.difference, True)]
        studied.append((one, rows, chart))
    page = {
        "found": found,
        "sides": sides,
        "flips": flips,
        "people": sorted(people, key=lambda named: named[0]),
        "studies": studied,
        "charts": charts,
    }
    return page, [*charts, *(chart for _study, _rows, chart in studied)]


def _draw_statistics(key: str, title: str, rows: Rows, source: str, *, x: str, high: float | None = 1.0) -> Chart:
    bars = [Bar(name, one["value"], one["low"], one["high"], one["n"], words=_("undefined")) for name, one in rows]
    return draw_bars(key, title, bars, x=x, high=high, empty=_("Nothing to show yet: no votes."), source=source)
