"""Time of a judgment: on the page without idle time, of both judgments in the reveal arm."""

from dataclasses import dataclass

from django.conf import settings

from corpus.models import Collection
from store.sql import fetch_row, fetch_rows, read_sql

TIME = read_sql(__file__, "read_median_time")
MONTHS = read_sql(__file__, "read_months_of_work")


def median_seconds(collection: Collection) -> float | None:
    """Return the median time of a judgment in seconds; None where no judgment has a time. One statement."""
    (median,) = fetch_row(TIME, collection=collection.pk)
    return None if median is None else float(median) / 1000


@dataclass(frozen=True, slots=True)
class MonthOfWork:
    """The work of a member in a month ("2026-11")."""

    membership: int
    name: str
    month: str
    judgments: int
    untimed: int  # Judgments without a time: they count with the collection's median.
    hours: float | None  # Without pauses; None where no judgment of the collection and no comparison has a time.
    comparisons: int = 0  # Of two documents; their time is part of the hours.


def months_of_work(collection: Collection) -> list[MonthOfWork]:
    """Return the work of each member by month in the site's time zone, newest first. Two statements.

    Judgments are those that count as a person's (`Assignment.judgments`). Judgments without a time count with the
    collection's median, comparisons without one with the mean of the member's others in that month.
    """
    median = median_seconds(collection)
    months = []
    rows = fetch_rows(MONTHS, collection=collection.pk, zone=settings.TIME_ZONE)
    for membership, name, month, judgments, timed, milliseconds, comparisons, compared_timed, compared_seconds in rows:
        untimed = judgments - timed
        seconds = milliseconds / 1000 + untimed * (median or 0.0)
        seconds += compared_seconds * (comparisons / compared_timed if compared_timed else 1)
        hours = seconds / 3600 if median is not None or compared_timed else None
        months.append(MonthOfWork(membership, name, month, judgments, untimed, hours, comparisons))
    return months
