"""Charts of agreement over time, and of annotators side by side."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.label_quality.records import OverTime, PeopleAgreement
from charts import Bar, Chart, draw_bars, draw_lines

UNITS = {"day": gettext_noop("day"), "week": gettext_noop("week (its Monday)")}


def agreement_chart(collection: str, over: OverTime) -> Chart | None:
    """A line for judges and one for people, with 95% bands; None where nothing is measured yet."""
    points = [point for point in over.points or () if point.kappa.value is not None]
    starts = sorted({point.start for point in points})
    if not starts:
        return None
    at = {start: float(place) for place, start in enumerate(starts)}
    groups = list(dict.fromkeys(point.group for point in points))
    series = {name: [(at[p.start], p.kappa.value or 0.0) for p in points if p.group == name] for name in groups}
    bands = {
        name: [
            (at[p.start], p.kappa.low, p.kappa.high)
            for p in points
            if p.group == name and p.kappa.low is not None and p.kappa.high is not None
        ]
        for name in groups
    }
    return draw_lines(
        "over-time",
        _("Agreement by %(unit)s") % {"unit": over.unit},
        series,
        x=_(UNITS.get(over.unit, over.unit)),
        y=_("Krippendorff's alpha (nominal), relevant or not"),
        bands=bands,
        names={place: start for start, place in at.items()},
        low=min([0.0, *(point.kappa.value for point in points if point.kappa.value is not None)]),
        high=1.0,
        source=f"{collection}: {over.population}; 95% intervals",
    )


def people_charts(collection: str, people: PeopleAgreement) -> list[Chart]:
    """Agreement with the others and with the reference, annotator by annotator; none where nobody judged."""
    found = people.people or ()
    sides = (
        ("majority", _("Agreement with the others on the same item"), _("share equal to the majority of the others")),
        ("gold", _("Right against the reference"), _("share equal to the reference")),
    )
    return [
        draw_bars(
            key,
            title,
            [_build_bar(person.name, getattr(person, key)) for person in found],
            x=f"{x}, 95% interval",
            high=1.0,
            source=f"{collection}: {people.population}",
        )
        for key, title, x in sides
        if any(getattr(person, key).value is not None for person in found)
    ]


def _build_bar(label: str, found: Statistic) -> Bar:
    return Bar(label, found.value, found.low, found.high, found.n, found.reason or "")
