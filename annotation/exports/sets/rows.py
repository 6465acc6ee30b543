"""The pairs of a training set as they pass from choice to choice. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby


@dataclass(slots=True)
class SetRow:
    """A pair that may enter a set. Texts and pairs stand by their primary keys; `pair` is 0 where there is none."""

    source: str
    query_id: str
    doc_id: str
    query: int
    document: int
    pair: int
    grade: int
    origin: str
    relevant: bool
    teacher: float | None = None  # In [0, 1], as the chosen teacher says; None: it says nothing.
    yes: int = 0
    votes: int = 0  # Its last votes, complete ones before others, and how many said relevant.
    panel: int = 0  # Votes that the campaign's panel has; 0: a judge alone was asked, or nobody.
    assumed: bool = False  # Nobody judged it: a run named it, and it is taken as a negative.
    rank: int = 0  # In the run, from 1; 0: not among the ranks that were asked for.
    campaign: int = 0  # Whose generations scored it (ERank); 0: none.
    labelled_at: datetime | None = None  # When its newest judgment was made; None: it has none.
    posterior: float | None = None  # Dawid-Skene's probability of the grade, where labels are aggregated.

    @property
    def annotated_score(self) -> float | None:
        """Share of the panel's votes that say relevant; None with fewer votes than it has."""
        return self.yes / self.votes if self.panel and self.votes >= self.panel else None


@dataclass(slots=True)
class SetQuery:
    """A query of the set with its rows, in the order of their document ids."""

    source: str
    id: str
    key: int  # The row of the database.
    rows: list[SetRow] = field(default_factory=list)
    synthetic: bool = False  # A model wrote it.
    seed: str = ""  # Id of the query that a synthetic one was made from.


def newest_label(rows: Iterable[SetRow]) -> str | None:
    """Return when the newest label of rows was made, in UTC with microseconds; None if unsaid."""
    times = [row.labelled_at for row in rows if row.labelled_at is not None]
    return max(times).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if times else None


def by_query(rows: list[SetRow]) -> list[SetQuery]:
    """Return the queries of rows that stand together by query."""
    gathered = [list(some) for _, some in groupby(rows, key=lambda row: row.query)]
    return [SetQuery(some[0].source, some[0].query_id, some[0].query, some) for some in gathered]


def keep_rows(queries: Iterable[SetQuery], choose: Callable[[SetQuery], list[SetRow]]) -> list[SetQuery]:
    """Give every query the rows that are chosen of it; those without a row are gone."""
    kept = []
    for query in queries:
        if rows := choose(query):
            query.rows = rows
            kept.append(query)
    return kept


def order_key(seed: int, *names: str) -> bytes:
    """Return where something stands in the seeded order: sha256 of the seed and its names."""
    return sha256("\0".join((str(seed), *names)).encode()).digest()
