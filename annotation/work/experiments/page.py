"""Charts and tables on the page of the experiment arms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.work.experiments.report import StudyResult
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

# Names, each with a statistic of the report as in its JSON.
Rows = Sequence[tuple[str, Mapping[str, Any]]]


def build_page(
    document: Mapping[str, Any], studies: Iterable[StudyResult], source: str
) -> tuple[dict[str, Any], list[Chart]]:
    """Return the context of the page and all its charts; `source` is printed below each saved chart."""
    sides = [(str(MOMENTS[side["moment"]]), side) for side in document["moments"]]
    flips = [(_("All"), document["flips"]["all"])]
    flips += [(str(SIDES[side]), figures) for side, figures in document["flips"]["by_side"].items()]
    people = [(figures["name"] or "?", figures) for figures in document["flips"]["by_person"]]
    right = [(name, side["accuracy"]) for name, side in sides]
    agreed = [(name, side["agreement"]) for name, side in sides]
    seconds = [(name, side["seconds"]) for name, side in sides]
    changed = []
    for name, figures in flips:
        changed.append((f"{name}: " + _("correct to wrong"), figures["right_to_wrong"]))
        changed.append((f"{name}: " + _("wrong to correct"), figures["wrong_to_right"]))
    alpha = _("Krippendorff's alpha (nominal), relevant or not")
    charts = [
        _draw_statistics("accuracy", _("Correct votes by debate condition"), right, source, x=_("share")),
        _draw_statistics("agreement", _("Agreement by debate condition"), agreed, source, x=alpha),
        _draw_statistics("flips", _("Votes changed by the debate"), changed, source, x=_("share")),
        _draw_statistics("seconds", _("Seconds per vote"), seconds, source, x=_("median seconds"), high=None),
    ]
    studied = []
    for study_table in studies:
        # Rows of its table: name, figures, whether they are a difference.
        hidden, shown = (
            (_("Without the debate"), study_table.table.hidden),
            (_("With the debate"), study_table.table.shown),
        )
        chart = _draw_statistics(
            f"study-{study_table.study.number}",
            _("Balanced accuracy in study %(study)s") % {"study": study_table.study.number},
            [(name, asdict(row.balanced_accuracy)) for name, row in (hidden, shown)],
            source,
            x=_("balanced accuracy of the majority"),
        )
        rows = [(*hidden, False), (*shown, False), (_("Difference"), study_table.table.difference, True)]
        studied.append((study_table, rows, chart))
    page = {
        "found": document,
        "sides": sides,
        "flips": flips,
        "people": sorted(people, key=lambda person: person[0]),
        "studies": studied,
        "charts": charts,
    }
    return page, [*charts, *(chart for _study, _rows, chart in studied)]


def _draw_statistics(key: str, title: str, rows: Rows, source: str, *, x: str, high: float | None = 1.0) -> Chart:
    bars = [
        Bar(name, statistic["value"], statistic["low"], statistic["high"], statistic["n"], words=_("undefined"))
        for name, statistic in rows
    ]
    return draw_bars(key, title, bars, x=x, high=high, empty=_("Nothing to show yet: no votes."), source=source)
