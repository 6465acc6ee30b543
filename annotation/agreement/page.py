"""The agreement page: what was asked for in the URL, the heat map's cells, and the text that sums it up."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotation.agreement.measures import Pairwise, Statistic
from annotation.agreement.report import OneAssessor, Report
from annotation.assessments import BY_NAME_ONLY, JUDGES, PEOPLE, Known, Population, choose
from corpus.charts import Chart
from corpus.charts import heat as heat_chart
from corpus.models import Assessor, Collection

RESAMPLES = 1_000
MEASURES = {
    "kappa": gettext_noop("Cohen's kappa"),
    "kappa_linear": gettext_noop("Kappa, linear weights"),
    "kappa_quadratic": gettext_noop("Kappa, quadratic weights"),
    "percent": gettext_noop("Percent agreement"),
}
POPULATIONS: dict[Population, str] = {
    "all": gettext_noop("all pairs"),
    "escalated": gettext_noop("escalated pairs only"),
    "audited": gettext_noop("audited pairs only"),
}
GROUPS = (
    (gettext_noop("People"), PEOPLE),
    (gettext_noop("Judges"), JUDGES),
    (gettext_noop("Policies and references"), BY_NAME_ONLY),
)
STEPS = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Bounds of the heat map's colours: below 0, then by fifths."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the page shall show. `graded` False: grades count as relevant or not."""

    chosen: tuple[Known, ...]
    population: Population
    measure: str
    binarize: int | None

    def names(self) -> set[str]:
        """Names that are ticked."""
        return {one.name for one in self.chosen}

    def query(self) -> str:
        """The same as a query string."""
        grades = [("grades", "relevant" if self.binarize else "given")]
        return urlencode(
            [("a", one.name) for one in self.chosen]
            + [("population", self.population), ("measure", self.measure)]
            + grades
        )


def read(parameters: QueryDict, collection: Collection, known: Sequence[Known]) -> Asked:
    """From a query string; what it does not know falls back to every judge, person and import, all pairs, kappa.

    Where a judge's yes stands beside grades of a longer scale, they are compared as relevant or not unless asked.
    """
    by_name = {one.name: one for one in known}
    named = [by_name[name] for name in parameters.getlist("a") if name in by_name]
    chosen = tuple(one for one in known if one in named) if named else tuple(choose(known))
    grades = parameters.get("grades", "")
    mixed = collection.grades > 1 and any(one.kind == Assessor.Kind.JUDGE for one in chosen)
    binary = grades == "relevant" or (grades != "given" and mixed)
    measure = parameters.get("measure", "")
    return Asked(
        chosen=chosen,
        population=next((one for one in POPULATIONS if one == parameters.get("population", "")), "all"),
        measure=measure if measure in MEASURES else "kappa",
        binarize=collection.relevant_from if binary and collection.grades > 1 else None,
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the heat map. `pair` None: an assessor with themself."""

    pair: Pairwise | None
    shown: Statistic | None
    percent: Statistic | None
    heat: str
    pairs: str
    """Query string of the pairs behind it."""
    names: str
    about: str
    """The cell in words."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the heat map."""

    assessor: OneAssessor
    cells: tuple[Cell, ...]


def matrix(report: Report, asked: Asked) -> list[Line]:
    """The pairwise values as a square table, in the order of the assessors."""
    found = {(pair.a, pair.b): pair for pair in report.measures.pairwise}
    places = range(len(report.assessors))
    return [
        Line(
            report.assessors[row],
            tuple(_cell(report, asked, found.get((min(row, at), max(row, at))), row, at) for at in places),
        )
        for row in places
    ]


def _cell(report: Report, asked: Asked, pair: Pairwise | None, row: int, at: int) -> Cell:
    if pair is None:
        return Cell(None, None, None, "", "", "", "")
    shown: Statistic = getattr(pair, asked.measure)
    a, b = report.name(row), report.name(at)
    names = _("%(a)s and %(b)s") % {"a": a, "b": b}
    about = _("%(names)s: %(words)s, over %(n)s pairs") % {"names": names, "words": words(shown), "n": f"{pair.n:,}"}
    where = ":".join(["disagree", *([str(asked.binarize)] if asked.binarize else [])])
    where += "" if asked.population == "all" else f":{asked.population}"
    pairs = urlencode({"a": a, "b": b, "cell": where})
    return Cell(pair, shown, pair.percent, heat(shown.value), pairs, names, about)


def heat(value: float | None) -> str:
    """The class of a value's colour."""
    return "heat-none" if value is None else f"heat-{sum(value >= step for step in STEPS)}"


def picture(report: Report, asked: Asked) -> Chart:
    """The heat map as a file."""
    found = {(pair.a, pair.b): getattr(pair, asked.measure).value for pair in report.measures.pairwise}
    places = range(len(report.assessors))
    return heat_chart(
        "matrix",
        _("%(measure)s, two by two") % {"measure": _(MEASURES[asked.measure])},
        {report.name(row): [found.get((min(row, at), max(row, at))) for at in places] for row in places},
        [one.name for one in report.assessors],
        summary=" ".join(summary(report, asked)),
        source=f"{report.collection}: {POPULATIONS[report.population]}",
    )


def words(statistic: Statistic) -> str:
    """A statistic in words: 0.42 (95% interval 0.31 to 0.53), or why it is undefined."""
    if statistic.value is None:
        return f"undefined, {statistic.reason}"
    interval = (
        ""
        if statistic.low is None
        else _(" (95%% interval %(low)s to %(high)s)")
        % {"low": f"{statistic.low:.2f}", "high": f"{statistic.high:.2f}"}
    )
    return f"{statistic.value:.2f}{interval}"


def summary(report: Report, asked: Asked) -> list[str]:
    """The page in a few sentences, for those who do not read tables."""
    measures, population = report.measures, _(POPULATIONS[report.population])
    if not measures.items:
        return [_("Nobody of these has graded a pair yet (%(population)s).") % {"population": population}]
    count = len(report.assessors)
    people = ngettext("%(count)s assessor", "%(count)s assessors", count) % {"count": count}
    alpha = measures.alpha_nominal
    lines = [
        _("%(people)s gave grades to %(items)s pairs (%(population)s); %(prevalence)s of their grades say relevant.")
        % {
            "people": people,
            "items": f"{measures.items:,}",
            "population": population,
            "prevalence": f"{report.prevalence or 0:.0%}",
        },
        _("Krippendorff's alpha over %(n)s pairs with two grades and more is %(words)s.")
        % {"n": f"{alpha.n:,}", "words": words(alpha)},
    ]
    label = _(MEASURES[asked.measure])
    defined = [(value, pair) for pair in measures.pairwise if (value := getattr(pair, asked.measure).value) is not None]
    if len(defined) > 1:
        (low, least), (high, most) = (pick(defined, key=lambda one: one[0]) for pick in (min, max))
        lines.append(
            _("%(label)s is highest between %(most)s (%(high)s) and lowest between %(least)s (%(low)s).")
            % {
                "label": label,
                "most": _both(report, most),
                "high": f"{high:.2f}",
                "least": _both(report, least),
                "low": f"{low:.2f}",
            }
        )
    return lines


def _both(report: Report, pair: Pairwise) -> str:
    return _("%(name)s and %(name2)s") % {"name": report.name(pair.a), "name2": report.name(pair.b)}


def overall(report: Report, *, two_grades: bool) -> list[tuple[str, str, Statistic]]:
    """Measures over all assessors: name, what it rests on, value. With two grades the three alphas are one."""
    measures, double = report.measures, _("over pairs with two grades and more")
    alphas = [
        (_("Krippendorff's alpha, nominal"), double, measures.alpha_nominal),
        (_("Krippendorff's alpha, ordinal"), double, measures.alpha_ordinal),
        (_("Krippendorff's alpha, interval"), double, measures.alpha_interval),
    ]
    if two_grades:
        equal = _("nominal, ordinal and interval alike; %(double)s") % {"double": double}
        alphas = [(_("Krippendorff's alpha"), equal, measures.alpha_nominal)]
    return [*alphas, (_("Fleiss' kappa"), _("over pairs that all of them graded"), measures.fleiss)]


def groups(known: Sequence[Known]) -> list[tuple[str, list[Known]]]:
    """The chooser: assessors by what they are; groups without anybody are left out."""
    found = [(label, [one for one in known if one.kind in kinds]) for label, kinds in GROUPS]
    return [(label, members) for label, members in found if members]


CSV_HEADER = ("a", "b", "n", *(f"{name}{part}" for name in MEASURES for part in ("", "_low", "_high")), "undefined")


def csv_rows(report: Report) -> list[tuple[object, ...]]:
    """Every pair of assessors with all measures; undefined values are empty, with their reason in the last column."""
    rows = []
    for pair in report.measures.pairwise:
        values: list[object] = []
        for name in MEASURES:
            one: Statistic = getattr(pair, name)
            values += ["" if value is None else round(value, 6) for value in (one.value, one.low, one.high)]
        rows.append((report.name(pair.a), report.name(pair.b), pair.n, *values, pair.kappa.reason or ""))
    return rows
