"""What one version of the qrels has that another has not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from benchmark.models import Qrels
from benchmark.qrels.reading import Row, load_rows
from corpus.models import Document, Query

What = Literal["added", "removed", "changed"]


class Change(NamedTuple):
    """A pair by primary keys with its grades (None: not judged there) and where the newer one comes from."""

    query: int
    document: int
    before: int | None
    after: int | None
    origin: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The same by the ids of files."""

    query: str
    document: str
    before: int | None
    after: int | None
    origin: str
    query_pk: int
    document_pk: int


@dataclass(frozen=True, slots=True)
class Diff:
    """From one version to another, by query and document."""

    added: list[Change]
    removed: list[Change]
    changed: list[Change]
    same: int

    @property
    def counts(self) -> dict[str, int]:
        """How many of each."""
        return {
            "added": len(self.added),
            "removed": len(self.removed),
            "changed": len(self.changed),
            "same": self.same,
        }

    def rows(self, what: What, start: int = 0, stop: int | None = None) -> list[Difference]:
        """Some of a kind with the ids of files. Two statements."""
        return named_changes(getattr(self, what)[start:stop])


@lru_cache(maxsize=4)
def _diff(one: int, other: int) -> Diff:
    before, after = load_rows(Qrels(pk=one)), load_rows(Qrels(pk=other))
    added: list[Change] = []
    removed: list[Change] = []
    changed: list[Change] = []
    same = 0
    for query in sorted(before.keys() | after.keys()):
        for change in _of_query(query, before, after):
            if change.before is None:
                added.append(change)
            elif change.after is None:
                removed.append(change)
            elif change.before != change.after:
                changed.append(change)
            else:
                same += 1
    return Diff(added, removed, changed, same)


def diff(one: Qrels, other: Qrels) -> Diff:
    """What the other version added, removed and changed. Versions do not change, so this process remembers some."""
    return _diff(one.pk, other.pk)


def _of_query(query: int, before: Mapping[int, Row], after: Mapping[int, Row]) -> Iterator[Change]:
    old, new = _graded(before.get(query)), _graded(after.get(query))
    for document in sorted(old.keys() | new.keys()):
        was, now = old.get(document), new.get(document)
        origin = now[1] if now else was[1] if was else ""
        yield Change(query, document, was and was[0], now and now[0], origin)


def _graded(row: Row | None) -> dict[int, tuple[int, str]]:
    if row is None:
        return {}
    grades = zip(row.grades.tolist(), row.origins, strict=True)
    return dict(zip(row.documents.tolist(), grades, strict=True))


def named_changes(changes: Sequence[Change]) -> list[Difference]:
    """With the ids of files."""
    queries = dict(Query.objects.filter(pk__in={one.query for one in changes}).values_list("pk", "external_id"))
    wanted = np.unique([one.document for one in changes]).tolist()
    documents = dict(Document.objects.filter(pk__in=wanted).values_list("pk", "external_id"))
    return [
        Difference(
            queries.get(one.query, ""),
            documents.get(one.document, ""),
            one.before,
            one.after,
            one.origin,
            one.query,
            one.document,
        )
        for one in changes
    ]
