"""The difference of two versions of the qrels."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from benchmark.models import Qrels, QrelsRow
from corpus.models import Document, Query

ChangeKind = Literal["added", "removed", "changed"]
Integers = NDArray[np.int64]

# Numbers in one string are read ten times faster than as arrays, so that a page can compare 200,000 grades.
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
    """Difference of two versions. Positions of pairs: added in `after`, removed in `before`, changed in both."""

    before_id: int
    after_id: int
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

    def rows(self, kind: ChangeKind, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Return differences of a kind, by query and document, with external ids. Three statements.

        A grade is None where the pair is not judged; `origin` says where the newer grade comes from.
        """
        selection = slice(start, stop)
        if kind == "added":
            return self._describe_pairs(self.after, self.after_id, self.added[selection], None, self.added[selection])
        if kind == "removed":
            return self._describe_pairs(
                self.before, self.before_id, self.removed[selection], self.removed[selection], None
            )
        old, new = (positions[selection] for positions in self.changed)
        return self._describe_pairs(self.after, self.after_id, new, old, new)

    def _describe_pairs(
        self, flat: Flat, version: int, positions: Integers, old: Integers | None, new: Integers | None
    ) -> list[dict[str, Any]]:
        """Describe the pairs at `positions` of `flat`; `old` and `new` are the positions of their grades."""
        queries, documents = flat.queries[positions].tolist(), flat.documents[positions].tolist()
        query_names = dict(Query.objects.filter(pk__in=set(queries)).values_list("pk", "external_id"))
        document_names = dict(Document.objects.filter(pk__in=set(documents)).values_list("pk", "external_id"))
        stored_rows = QrelsRow.objects.filter(qrels=version, query__in=set(queries))
        origins = {
            (query, document): origin
            for query, ids, query_origins in stored_rows.values_list("query_id", "documents", "origins")
            for document, origin in zip(ids, query_origins, strict=True)
        }
        before = [None] * len(queries) if old is None else self.before.grades[old].tolist()
        after = [None] * len(queries) if new is None else self.after.grades[new].tolist()
        return [
            {
                "query": query_names.get(query, ""),
                "document": document_names.get(document, ""),
                "before": grade_before,
                "after": grade_after,
                "origin": origins[query, document],
                "query_pk": query,
                "document_pk": document,
            }
            for query, document, grade_before, grade_after in zip(queries, documents, before, after, strict=True)
        ]


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
def _compute_diff(before_id: int, after_id: int) -> Diff:
    before, after = load_flat(before_id), load_flat(after_id)
    documents = np.unique(np.concatenate([before.documents, after.documents]))
    # One number for each pair: its query, and the position of its document among those of both versions.
    old, new = (
        part.queries * max(len(documents), 1) + np.searchsorted(documents, part.documents) for part in (before, after)
    )
    # Both keys ascend: rows come by query, and documents of a row ascend.
    positions = np.minimum(np.searchsorted(old, new), max(len(old) - 1, 0))
    is_in_both = old[positions] == new if len(old) else np.zeros(len(new), dtype=bool)
    both_old, both_new = positions[is_in_both], np.flatnonzero(is_in_both)
    differs = before.grades[both_old] != after.grades[both_new]
    is_removed = np.ones(len(old), dtype=bool)
    is_removed[both_old] = False
    return Diff(
        before_id=before_id,
        after_id=after_id,
        before=before,
        after=after,
        added=np.flatnonzero(~is_in_both),
        removed=np.flatnonzero(is_removed),
        changed=(both_old[differs], both_new[differs]),
        same=int((~differs).sum()),
    )


def diff_versions(before: Qrels, after: Qrels) -> Diff:
    """Return what `after` added, removed and changed. Versions never change, so results are cached."""
    return _compute_diff(before.pk, after.pk)
