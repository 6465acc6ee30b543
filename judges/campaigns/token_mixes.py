"""Token counts of judges' earlier answers, for estimates: shares of the input in caches, and tokens of reasoning."""

from collections.abc import Iterable

from judges.campaigns.estimates import Mix
from judges.records import WITHOUT_PAIR, Judge
from store.sql import fetch_rows, read_sql

LATEST = 200  # Answers that are read of each judge, from the newest campaign in which it was asked.

ANSWERS = read_sql(__file__, "read_token_mixes")


def mixes_of(judges: Iterable[Judge]) -> dict[int, Mix]:
    """Read the mixes of judges that have answered before, by id. One statement, none for offline judges alone."""
    asked = list({judge.id for judge in judges if judge.provider != "offline"})
    if not asked:
        return {}
    rows = fetch_rows(ANSWERS, judges=asked, apart=list(WITHOUT_PAIR), latest=LATEST)
    return {judge: Mix(*counts) for judge, *counts in rows}
