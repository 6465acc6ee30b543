"""Statistics over every vote and judgment: computed at once for small collections, by a worker for large ones.

A page of a large collection reads the stored row and says "as of"; nothing that a GET asks for is written.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pydantic import TypeAdapter

from annotation.models import StoredResult
from annotation.quality.label_quality import kappas
from annotation.quality.label_quality.annotators import measure_annotators
from annotation.quality.label_quality.audits import measure_audits, measure_collection_audits
from annotation.quality.label_quality.records import Audits, Kappa, PersonQuality, Point
from charts import Bar, Chart, draw_bars, draw_lines
from corpus.models import Collection
from jobs.models import BackgroundJob
from jobs.results import ResultKind
from judges.campaigns import counters
from judges.models import Campaign
from store.sql import fetch_row

SMALL = 20_000  # Votes and judgments up to which everything is computed while the page waits.
STALE_SECONDS = 120  # A stored row older than this is worth computing anew while work goes on.
UNITS = {"day": gettext_noop("day"), "week": gettext_noop("week (starting Monday)")}

# Of counters, because counting the votes of a large collection takes as long as a page may take.
SIZE = """
SELECT (SELECT coalesce(sum(t.value), 0) FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
        WHERE c.collection_id = %(collection)s AND t.key IN ('calls', 'calls_cached'))
     + (SELECT count(*) FROM (
        SELECT FROM corpus_assessor a JOIN corpus_judgment j ON j.assessor_id = a.id
        WHERE a.collection_id = %(collection)s AND a.kind NOT IN ('policy', 'reference') LIMIT %(small)s) AS spoken)
"""
PEOPLE_POPULATION = gettext_noop("each annotator's first answers on this collection's pairs")
_AUDITS, _KAPPAS = TypeAdapter(Audits), TypeAdapter(tuple[Kappa, ...])
_PEOPLE, _POINTS = TypeAdapter(tuple[PersonQuality, ...]), TypeAdapter(tuple[Point, ...])


@dataclass(frozen=True, slots=True)
class StoredStatistics:
    """Label quality of a collection for its pages. `kappas`, `people`, `points` None: nothing is computed yet."""

    stored: bool  # The figures were read from storage: say "as of".
    at: datetime | None = None  # When they were computed.
    audits: Audits | None = None
    kappas: tuple[Kappa, ...] | None = None
    people: tuple[PersonQuality, ...] | None = None
    unit: str = "day"  # Of the points: day, or week where the work took longer than a month.
    points: tuple[Point, ...] | None = None
    job: BackgroundJob | None = None  # Of a worker that computes them anew, or the last that did.

    @property
    def is_stale(self) -> bool:
        """Return whether a page should ask for new figures: they are stored, and old or missing."""
        if not self.stored:
            return False
        return self.at is None or (timezone.now() - self.at).total_seconds() > STALE_SECONDS


def cached_statistics(collection: Collection, campaign: Campaign | None = None) -> StoredStatistics:
    """Read or compute a collection's statistics; `campaign`: audits of that one."""
    if is_large(collection):
        result = STATISTICS.read(collection)
        found = replace(_load_statistics(result.values or {}, result.at, stored=True), job=result.job)
    else:
        found = _load_statistics(compute_statistics(collection), timezone.now(), stored=False)
    if campaign is None:
        return found
    return replace(found, audits=measure_audits(collection, campaign, counters.read(campaign.pk)))


def is_large(collection: Collection) -> bool:
    """Return whether a collection is so large that a worker computes its statistics (one query)."""
    return bool(fetch_row(SIZE, collection=collection.pk, small=SMALL + 1)[0] > SMALL)


def compute_statistics(collection: Collection) -> dict[str, Any]:
    """Compute all values, as JSON takes them."""
    known = kappas.read_binary_votes(collection)
    unit, points = kappas.over_time(collection, known)
    audited = measure_collection_audits(collection)
    return {
        "audits": asdict(audited) if audited else None,
        "kappas": [asdict(one) for one in kappas.measure_kappas(collection, known)],
        "people": [asdict(one) for one in measure_annotators(collection, known)],
        "unit": unit,
        "points": [asdict(one) for one in points],
    }


STATISTICS = ResultKind(
    "label-quality",
    "annotation.compute_statistics",
    StoredResult,
    lambda collection, _options, _tell: compute_statistics(collection),
)


def _load_statistics(values: dict[str, Any], at: datetime | None, *, stored: bool) -> StoredStatistics:
    if "kappas" not in values:
        return StoredStatistics(stored)
    return StoredStatistics(
        stored,
        at,
        audits=_AUDITS.validate_python(values["audits"]) if values["audits"] else None,
        kappas=_KAPPAS.validate_python(values["kappas"]),
        people=_PEOPLE.validate_python(values["people"]),
        unit=values["unit"],
        points=_POINTS.validate_python(values["points"]),
    )


def agreement_chart(collection: str, over: StoredStatistics) -> Chart | None:
    """Draw a line for judges and one for people, with 95% bands; None before any measurement."""
    points = [point for point in over.points or () if point.kappa.value is not None]
    if not points:
        return None
    at = {start: float(place) for place, start in enumerate(sorted({point.start for point in points}))}
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    bands: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for point in points:
        place, kappa = at[point.start], point.kappa
        series[point.group].append((place, kappa.value or 0.0))
        if kappa.low is not None and kappa.high is not None:
            bands[point.group].append((place, kappa.low, kappa.high))
    return draw_lines(
        "over-time",
        _("Agreement by %(unit)s") % {"unit": over.unit},
        series,
        x=_(UNITS.get(over.unit, over.unit)),
        y=_("Krippendorff's alpha (nominal), relevant or not"),
        bands=bands,
        names={place: start for start, place in at.items()},
        low=min(0.0, *(value for line in series.values() for _place, value in line)),
        high=1.0,
        source=f"{collection}: {kappas.OVER_TIME}; 95% intervals",
    )


def people_charts(collection: str, people: Sequence[PersonQuality]) -> list[Chart]:
    """Draw each annotator's agreement with others and the reference; none without votes."""
    sides = (
        ("majority", _("Agrees with others on the same items"), _("share equal to the others' majority")),
        ("gold", _("Accuracy on reference grades"), _("share equal to the reference grade")),
    )
    charts, source = [], f"{collection}: {PEOPLE_POPULATION}"
    for key, title, x in sides:
        bars = []
        for person in people:
            share, address = getattr(person, key), reverse("person", args=[collection, person.membership])
            bars.append(
                Bar(person.name, share.value, share.low, share.high, share.n, share.reason or "", address=address)
            )
        if any(bar.value is not None for bar in bars):
            charts.append(draw_bars(key, title, bars, x=f"{x}, 95% interval", high=1.0, source=source))
    return charts
