"""Statistics over every vote and judgment: computed at once for small collections, by a worker for large ones.

A page of a large collection shows stored statistics and says of when they are. A GET writes nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pydantic import TypeAdapter

from annotation.models import StoredResult
from annotation.quality.label_quality import kappas
from annotation.quality.label_quality.annotators import measure_annotators, measure_months
from annotation.quality.label_quality.audits import measure_audits, measure_collection_audits
from annotation.quality.label_quality.records import Audits, Kappa, MonthQuality, PersonQuality, Point
from charts import Bar, Chart, draw_bars, draw_lines
from corpus.models import Collection
from jobs.models import BackgroundJob
from jobs.results import ResultKind
from judges.costs import counters
from judges.models import Campaign
from store.sql import fetch_row, fetch_rows

SMALL = 20_000  # Votes and judgments up to which everything is computed while the page waits.
STALE_SECONDS = 120  # Age from which a page asks for stored statistics to be recomputed.
UNITS = {"day": gettext_noop("day"), "week": gettext_noop("week (starting Monday)")}

# Votes are read from counters: counting those of a large collection takes as long as a page may take.
COUNT_VOTES = """
SELECT (SELECT coalesce(sum(t.value), 0) FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
        WHERE c.collection_id = %(collection)s AND t.key IN ('calls', 'calls_cached'))
     + (SELECT count(*) FROM (
        SELECT FROM corpus_assessor a JOIN corpus_judgment j ON j.assessor_id = a.id
        WHERE a.collection_id = %(collection)s AND a.kind NOT IN ('policy', 'reference') LIMIT %(small)s) AS spoken)
"""
# When somebody last finished, skipped or returned a pair.
LAST_JUDGED = """
SELECT max(last.ended_at) FROM annotation_membership m CROSS JOIN LATERAL (
    SELECT ended_at FROM annotation_assignment a WHERE a.membership_id = m.id AND a.ended_at IS NOT NULL
    ORDER BY a.ended_at DESC LIMIT 1) last
WHERE m.collection_id = %(collection)s
"""
# An inbox has statistics stored at most so often, and a worker rests so many times as long as it computed.
MOST_OFTEN, REST = timedelta(minutes=1), 20
# Labels of today by the day on which they got their grade, those that people gave apart.
LABELS_BY_DAY = """
SELECT (l.updated_at AT TIME ZONE %(zone)s)::date::text, count(*) FILTER (WHERE NOT people),
       count(*) FILTER (WHERE people)
FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id,
     LATERAL (SELECT l.origin IN ('people', 'adjudicator', 'imported')) who (people)
WHERE p.collection_id = %(collection)s AND l.aspect_id IS NULL GROUP BY 1 ORDER BY 1
"""
PEOPLE_POPULATION = gettext_noop("each annotator's first answers on this collection's pairs")
_AUDITS, _KAPPAS = TypeAdapter(Audits), TypeAdapter(tuple[Kappa, ...])
_PEOPLE, _POINTS = TypeAdapter(tuple[PersonQuality, ...]), TypeAdapter(tuple[Point, ...])
_MONTHS = TypeAdapter(tuple[MonthQuality, ...])


@dataclass(frozen=True, slots=True)
class StoredStatistics:
    """Label quality of a collection for its pages. `kappas`, `people`, `points`: None before the first computation."""

    stored: bool  # Whether the figures were read from storage: pages say "as of".
    at: datetime | None = None  # Time of the computation.
    audits: Audits | None = None
    kappas: tuple[Kappa, ...] | None = None
    people: tuple[PersonQuality, ...] | None = None
    unit: str = "day"  # Unit of the points: day, or week where the work took longer than a month.
    points: tuple[Point, ...] | None = None
    labels: tuple[tuple[str, int, int], ...] = ()  # Where stored, by day: labels of judges, and of people.
    job: BackgroundJob | None = None  # The newest job that computes them.

    @property
    def is_stale(self) -> bool:
        """Whether a page should have the stored figures recomputed: they are old or missing."""
        if not self.stored:
            return False
        return self.at is None or (timezone.now() - self.at).total_seconds() > STALE_SECONDS


def cached_statistics(collection: Collection, campaign: Campaign | None = None) -> StoredStatistics:
    """Read or compute a collection's statistics, with the audits of `campaign` where one is named."""
    if is_large(collection):
        statistics = read_stored_statistics(collection)
    else:
        statistics = _load_statistics(compute_statistics(collection), timezone.now(), stored=False)
    if campaign is None:
        return statistics
    return replace(statistics, audits=measure_audits(collection, campaign, counters.read(campaign.pk)))


def cached_months(collection: Collection) -> tuple[MonthQuality, ...]:
    """Read or compute everyone's quality by month; empty in a large collection before the first computation."""
    if is_large(collection):
        return _MONTHS.validate_python((STATISTICS.read(collection).values or {}).get("months", ()))
    return tuple(measure_months(collection))


def read_stored_statistics(collection: Collection) -> StoredStatistics:
    """Read a collection's statistics as they were last stored; nothing is computed."""
    result = STATISTICS.read(collection)
    return replace(_load_statistics(result.values or {}, result.at, stored=True), job=result.job)


def is_outdated(collection: Collection, statistics: StoredStatistics) -> bool:
    """Return whether people have judged since the statistics were stored, and storing them again is worth its time."""
    at, job = statistics.at, statistics.job
    if job is not None and not job.is_over:
        return False
    (judged_at,) = fetch_row(LAST_JUDGED, collection=collection.pk)
    if judged_at is None or at is None:
        return judged_at is not None
    took = job.ended_at - job.started_at if job and job.ended_at and job.started_at else timedelta()
    return bool(judged_at > at and timezone.now() - at > max(MOST_OFTEN, REST * took))


def is_large(collection: Collection) -> bool:
    """Return whether a collection is so large that a worker computes its statistics. One query."""
    return bool(fetch_row(COUNT_VOTES, collection=collection.pk, small=SMALL + 1)[0] > SMALL)


def compute_statistics(collection: Collection) -> dict[str, Any]:
    """Compute all statistics, as values of JSON."""
    votes = kappas.read_binary_votes(collection)
    unit, points = kappas.over_time(collection, votes)
    audits = measure_collection_audits(collection)
    return {
        "audits": asdict(audits) if audits else None,
        "kappas": [asdict(kappa) for kappa in kappas.measure_kappas(collection, votes)],
        "people": [asdict(person) for person in measure_annotators(collection, votes)],
        "unit": unit,
        "points": [asdict(point) for point in points],
    }


def count_labels(collection: Collection) -> list[tuple[str, int, int]]:
    """Return the labels by day: those of judges, and those of people."""
    return list(fetch_rows(LABELS_BY_DAY, collection=collection.pk, zone=settings.TIME_ZONE))


STATISTICS = ResultKind(
    "label-quality",
    "annotation.compute_statistics",
    StoredResult,
    lambda collection, _options, _tell: {
        **compute_statistics(collection),
        "labels": count_labels(collection),
        "months": [asdict(month) for month in measure_months(collection)],
    },
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
        # Figures that were stored before have none.
        labels=tuple((day, judges, people) for day, judges, people in values.get("labels", ())),
    )


def agreement_chart(collection: str, statistics: StoredStatistics) -> Chart | None:
    """Draw the agreement of judges and of people over time, with 95% bands; None before any measurement."""
    points = [point for point in statistics.points or () if point.kappa.value is not None]
    if not points:
        return None
    at = {start: float(position) for position, start in enumerate(sorted({point.start for point in points}))}
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    bands: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for point in points:
        position, kappa = at[point.start], point.kappa
        series[point.group].append((position, kappa.value or 0.0))
        if kappa.low is not None and kappa.high is not None:
            bands[point.group].append((position, kappa.low, kappa.high))
    return draw_lines(
        "over-time",
        _("Agreement by %(unit)s") % {"unit": statistics.unit},
        series,
        x=_(UNITS.get(statistics.unit, statistics.unit)),
        y=_("Krippendorff's alpha (nominal), relevant or not"),
        bands=bands,
        names={position: start for start, position in at.items()},
        low=min(0.0, *(value for line in series.values() for _place, value in line)),
        high=1.0,
        source=f"{collection}: {kappas.OVER_TIME}; 95% intervals",
    )


def labels_chart(collection: Collection, statistics: StoredStatistics) -> Chart | None:
    """Draw the labels of judges and of people over time, summed up; None before there are two days with any."""
    rows = statistics.labels if statistics.stored else count_labels(collection)
    if len(rows) < 2:
        return None
    days, *counts = zip(*rows, strict=True)
    sums = {name: list(accumulate(row)) for name, row in zip((_("judges"), _("people")), counts, strict=True)}
    return draw_lines(
        "labels-over-time",
        _("Labels over time"),
        {name: [(float(at), float(value)) for at, value in enumerate(row)] for name, row in sums.items() if row[-1]},
        x=_("day"),
        y=_("pairs with a label"),
        names={float(at): day for at, day in enumerate(days)},
        low=0.0,
        height=170,
        summary=_("%(judges)s labels of judges and %(people)s of people, by the day on which they got their grade.")
        % {"judges": f"{sum(counts[0]):,}", "people": f"{sum(counts[1]):,}"},
        source=collection.name,
    )


def people_charts(collection: str, people: Sequence[PersonQuality]) -> list[Chart]:
    """Draw each annotator's agreement with the others and with the reference; a chart without values is left out."""
    sides = (
        ("majority", _("Agrees with others on the same items"), _("share equal to the others' majority")),
        ("gold", _("Accuracy on reference grades"), _("share equal to the reference grade")),
    )
    charts, source = [], f"{collection}: {PEOPLE_POPULATION}"
    for key, title, x in sides:
        bars = []
        for person in people:
            share, address = getattr(person, key), reverse("member", args=[collection, person.membership])
            bars.append(
                Bar(person.name, share.value, share.low, share.high, share.n, share.reason or "", address=address)
            )
        if any(bar.value is not None for bar in bars):
            charts.append(draw_bars(key, title, bars, x=f"{x}, 95% interval", high=1.0, source=source))
    return charts
