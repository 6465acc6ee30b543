"""Token counts of judges' earlier answers, for estimates: shares of the input in caches, and tokens of reasoning."""

from collections.abc import Iterable

from judges.campaigns.estimates import Mix
from judges.records import WITHOUT_PAIR, Judge
from store.sql import fetch_rows, read_sql

LATEST = 200  # Answers that are read for each judge, from the newest campaign that called it.

ANSWERS = read_sql(__file__, "read_token_mixes")


def mixes_of(judges: Iterable[Judge]) -> dict[int, Mix]:
    """Read the token mixes of judges that have answered before, by id. One statement; none for offline judges."""
    judge_ids = list({judge.id for judge in judges if judge.provider != "offline"})
    if not judge_ids:
        return {}
    rows = fetch_rows(ANSWERS, judges=judge_ids, apart=list(WITHOUT_PAIR), latest=LATEST)
    return {judge: Mix(*counts) for judge, *counts in rows}
