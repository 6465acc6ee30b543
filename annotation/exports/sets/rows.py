"""The rows and queries of a training set. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby


@dataclass(slots=True)
class SetRow:
    """A pair of a set. `query`, `document` and `pair` are primary keys; `pair`: 0 if there is none."""

    source: str
    query_id: str
    doc_id: str
    query: int
    document: int
    pair: int
    grade: int
    origin: str
    relevant: bool
    target_score: float | None = None  # What a model should learn to answer, in [0, 1]; None: unknown.
    yes: int = 0  # Number of votes for relevant.
    votes: int = 0  # Number of its newest votes, complete ones before others.
    panel: int = 0  # Number of votes of the campaign's panel; 0: a single judge was asked, or none.
    assumed: bool = False  # Not judged: a document of a run that is taken as a negative.
    rank: int = 0  # Rank in the run, from 1; 0: not among the chosen ranks.
    campaign: int = 0  # Key of the campaign whose generations scored it (ERank); 0: none.
    labelled_at: datetime | None = None  # Time of its newest judgment; None: it has none.
    posterior: float | None = None  # Dawid-Skene's probability of the grade, of aggregated labels.

    @property
    def annotated_score(self) -> float | None:
        """Share of the panel's votes for relevant; None if votes are missing."""
        return self.yes / self.votes if self.panel and self.votes >= self.panel else None


@dataclass(slots=True)
class SetQuery:
    """A query of the set with its rows, in the order of their document ids."""

    source: str  # Name of the collection.
    id: str
    key: int  # Primary key.
    rows: list[SetRow] = field(default_factory=list)
    synthetic: bool = False  # Whether a model wrote it.
    seed: str = ""  # Id of the query from which a synthetic query was made.


def newest_label_time(rows: Iterable[SetRow]) -> str | None:
    """Return the time of the rows' newest label, in UTC with microseconds; None if unknown."""
    times = [row.labelled_at for row in rows if row.labelled_at is not None]
    return max(times).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if times else None


def by_query(rows: list[SetRow]) -> list[SetQuery]:
    """Return the queries of rows, in which those of a query are adjacent."""
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row.query)]
    return [SetQuery(group[0].source, group[0].query_id, group[0].query, group) for group in groups]


def keep_rows(queries: Iterable[SetQuery], choose: Callable[[SetQuery], list[SetRow]]) -> list[SetQuery]:
    """Reduce every query to its chosen rows, and return the queries that have any."""
    nonempty_queries = []
    for query in queries:
        if rows := choose(query):
            query.rows = rows
            nonempty_queries.append(query)
    return nonempty_queries


def order_key(seed: int, *names: str) -> bytes:
    """Return the sort key of the seeded order: sha256 of the seed and the names."""
    return sha256("\0".join((str(seed), *names)).encode()).digest()
