"""Time of a judgment: on the page without idle time, of both judgments in the reveal arm."""

from corpus.models import Collection
from store.sql import fetch_row, read_sql

TIME = read_sql(__file__, "read_median_time")


def median_seconds(collection: Collection) -> float | None:
    """Return the median time of a judgment in seconds; None where no judgment has a time. One statement."""
    (median,) = fetch_row(TIME, collection=collection.pk)
    return None if median is None else float(median) / 1000
