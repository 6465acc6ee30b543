"""The difference of two versions of the qrels."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from benchmark.models import Qrels, QrelsRow
from corpus.models import Document, Query

What = Literal["added", "removed", "changed"]
Integers = NDArray[np.int64]

# Numbers as one string are read ten times faster than as arrays: a page compares 200,000 grades in its time.
FLAT = """
SELECT array_agg(query_id ORDER BY query_id), array_agg(cardinality(documents) ORDER BY query_id),
    string_agg(array_to_string(documents, ' '), ' ' ORDER BY query_id),
    string_agg(array_to_string(grades, ' '), ' ' ORDER BY query_id)
FROM benchmark_qrelsrow WHERE qrels_id = %s AND documents <> '{}'
"""


class Flat(NamedTuple):
    """A version as three columns, by query and document."""

    queries: Integers
    documents: Integers
    grades: Integers


@dataclass(frozen=True, slots=True)
class Diff:
    """Difference of versions: added (places in `after`), removed (`before`), changed (both)."""

    one: int
    other: int
    before: Flat
    after: Flat
    added: Integers
    removed: Integers
    changed: tuple[Integers, Integers]
    same: int

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers of grades that were added, removed, changed, or stayed the same."""
        return {
            "added": len(self.added),
            "removed": len(self.removed),
            "changed": len(self.changed[0]),
            "same": self.same,
        }

    def rows(self, what: What, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Return some differences of a kind, by query and document, with the ids of files. Three statements.

        A grade is None where the pair is not judged; `origin` is where the newer one comes from.
        """
        some = slice(start, stop)
        if what == "added":
            return self._told(self.after, self.other, self.added[some], None, self.added[some])
        if what == "removed":
            return self._told(self.before, self.one, self.removed[some], self.removed[some], None)
        old, new = (places[some] for places in self.changed)
        return self._told(self.after, self.other, new, old, new)

    def _told(
        self, flat: Flat, version: int, places: Integers, old: Integers | None, new: Integers | None
    ) -> list[dict[str, Any]]:
        """`places` in `flat` say which pairs; `old` and `new` where their grades stand."""
        queries, documents = flat.queries[places].tolist(), flat.documents[places].tolist()
        asked = dict(Query.objects.filter(pk__in=set(queries)).values_list("pk", "external_id"))
        names = dict(Document.objects.filter(pk__in=set(documents)).values_list("pk", "external_id"))
        rows = QrelsRow.objects.filter(qrels=version, query__in=set(queries))
        origins = {
            (query, document): origin
            for query, ids, of_query in rows.values_list("query_id", "documents", "origins")
            for document, origin in zip(ids, of_query, strict=True)
        }
        before = [None] * len(queries) if old is None else self.before.grades[old].tolist()
        after = [None] * len(queries) if new is None else self.after.grades[new].tolist()
        told = []
        for query, document, was, now in zip(queries, documents, before, after, strict=True):
            ids = {"query": asked.get(query, ""), "document": names.get(document, "")}
            keys = {"query_pk": query, "document_pk": document}
            told.append({**ids, "before": was, "after": now, "origin": origins[query, document], **keys})
        return told


def load_flat(version: int) -> Flat:
    """Load a version by its primary key."""
    with connection.cursor() as cursor:
        cursor.execute(FLAT, [version])
        queries, counts, documents, grades = cursor.fetchone()
    if queries is None:
        return Flat(*(np.empty(0, np.int64) for _ in range(3)))
    columns = (np.array(text.split(), dtype=np.int64) for text in (documents, grades))
    return Flat(np.repeat(np.array(queries, dtype=np.int64), counts), *columns)


@lru_cache(maxsize=4)
def _compute_diff(one: int, other: int) -> Diff:
    before, after = load_flat(one), load_flat(other)
    documents = np.unique(np.concatenate([before.documents, after.documents]))
    # One number for each pair: its query, and the place of its document among all of both versions.
    old, new = (
        part.queries * max(len(documents), 1) + np.searchsorted(documents, part.documents) for part in (before, after)
    )
    # Both keys ascend: rows come by query, and documents of a row ascend.
    at = np.minimum(np.searchsorted(old, new), max(len(old) - 1, 0))
    is_known = old[at] == new if len(old) else np.zeros(len(new), dtype=bool)
    both_old, both_new = at[is_known], np.flatnonzero(is_known)
    differs = before.grades[both_old] != after.grades[both_new]
    gone = np.ones(len(old), dtype=bool)
    gone[both_old] = False
    return Diff(
        one=one,
        other=other,
        before=before,
        after=after,
        added=np.flatnonzero(~is_known),
        removed=np.flatnonzero(gone),
        changed=(both_old[differs], both_new[differs]),
        same=int((~differs).sum()),
    )


def diff_versions(one: Qrels, other: Qrels) -> Diff:
    """Return what the other version added, removed and changed. Versions never change, so some are remembered."""
    return _compute_diff(one.pk, other.pk)
