"""Signals against a collection's labels: judges' votes, Dawid-Skene, near-duplicates, and an out-of-fold model."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.agreement.aggregates import fit_matrix
from annotation.agreement.grade_matrix import JUDGES, GradeMatrix, load_grade_matrix
from annotation.agreement.resampling import MISSING
from annotation.quality.label_errors.features import build_features
from annotation.quality.label_errors.margins import score_out_of_fold
from annotation.quality.label_errors.suspicion import Signals
from corpus.models import Collection, Document, Label, Query
from corpus.search.near import DOCUMENT_WORDS, QUERY_WORDS, groups_of
from jobs.results import ProgressCallback

# Jaccard similarity of shingles from which texts count as near-duplicates.
QUERIES_ALIKE, DOCUMENTS_ALIKE = 0.9, 0.8
MOST = 100_000  # Number of newest labels that are examined: their texts are in memory together.
PIECE = 2_000  # Number of texts per query of the database.
STEPS = 4
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelRows:
    """The labels that are examined. `relevant`: 0 or 1; `complete`: whether these are all labels."""

    pairs: Integers
    queries: Integers
    documents: Integers
    grades: Integers
    relevant: Integers
    complete: bool


def read_labels(collection: Collection) -> LabelRows:
    """Read the newest labels of current texts, in the order of their pairs."""
    current = {"pair__query__is_current": True, "pair__document__is_current": True}
    labels = Label.objects.filter(pair__collection=collection, aspect=None, **current).order_by("-pk")
    # One more than the limit, which shows that labels were left out.
    rows = list(labels.values_list("pair", "pair__query", "pair__document", "grade")[: MOST + 1])
    # Sorted by pair for the binary searches below.
    table = np.array(sorted(rows[:MOST]), dtype=np.int64).reshape(-1, 4)
    pairs, queries, documents, grades = table.T
    relevant = (grades >= collection.relevant_from).astype(np.int64)
    return LabelRows(pairs, queries, documents, grades, relevant, len(rows) <= MOST)


def gather_signals(collection: Collection, rows: LabelRows, tell: ProgressCallback) -> Signals:
    """Compute all signals against the labels; a signal is NaN where the collection has too little data."""
    tell(0, STEPS, _("reading votes"))
    grades = load_grade_matrix(collection)
    # A missing grade must remain missing: by the comparison alone it would become 0.
    relevant = np.where(grades.grades == MISSING, MISSING, grades.grades >= collection.relevant_from)
    matrix = replace(grades, grades=relevant.astype(np.int16))
    against, votes = _count_votes(rows, matrix)
    dawid_skene = _doubt_by_dawid_skene(rows, matrix)
    tell(1, STEPS, _("reading texts"))
    # People and judges see titles too, so texts are compared with their titles.
    queries = dict(_read_texts(Query.objects, rows.queries, "text"))
    documents = {
        pk: f"{title}\n{text}" if title else text
        for pk, title, text in _read_texts(Document.objects, rows.documents, "title", "text")
    }
    tell(2, STEPS, _("comparing texts"))
    query_groups = _group_texts(queries, rows.queries, QUERIES_ALIKE, QUERY_WORDS)
    document_groups = _group_texts(documents, rows.documents, DOCUMENTS_ALIKE, DOCUMENT_WORDS)
    others, group = count_others(rows.relevant, query_groups, document_groups)
    tell(3, STEPS, _("fitting a model"))
    pairs = list(zip(rows.queries.tolist(), rows.documents.tolist(), strict=True))
    scores = score_out_of_fold(build_features(queries, documents, pairs), rows.relevant, query_groups)
    # The probability of the other label is the signal.
    model = np.full(len(pairs), np.nan) if scores is None else np.where(rows.relevant == 1, 1 - scores, scores)
    tell(STEPS, STEPS, "")
    return Signals(against, votes, dawid_skene, others, group, model)


def count_others(relevant: Integers, queries: Integers, documents: Integers) -> tuple[Integers, Integers]:
    """Return for each label the number of near-duplicate pairs with the other label, and of all, itself included.

    `queries` and `documents`: the groups of near-duplicates to which the pairs' texts belong.
    """
    _keys, group = np.unique(np.stack([queries, documents], axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    sizes, positives = np.bincount(group), np.bincount(group, weights=relevant).astype(np.int64)
    others: Integers = np.where(relevant == 1, sizes[group] - positives[group], positives[group])
    return others, sizes[group]


def _count_votes(rows: LabelRows, matrix: GradeMatrix) -> tuple[Integers, Integers]:
    """Return for each label the number of judges who contradict it, and of all who voted.

    Only judges count: people's answers are where the labels come from.
    """
    judges = np.array([assessor.kind in JUDGES for assessor in matrix.assessors], dtype=np.bool_)
    # Without any grade there is no last column for the search below.
    if not len(matrix.pairs):
        return np.zeros(len(rows.pairs), np.int64), np.zeros(len(rows.pairs), np.int64)
    columns = np.minimum(np.searchsorted(matrix.pairs, rows.pairs), len(matrix.pairs) - 1)
    votes = matrix.grades[judges][:, columns]
    has_vote = (votes != MISSING) & (matrix.pairs[columns] == rows.pairs)
    against = has_vote & (votes != rows.relevant)
    return against.sum(axis=0), has_vote.sum(axis=0)


def _doubt_by_dawid_skene(rows: LabelRows, matrix: GradeMatrix) -> NDArray[np.float64]:
    """Return the probability of the other label; NaN for a pair without grades, and everywhere if the fit failed."""
    doubt = np.full(len(rows.pairs), np.nan)
    fit = fit_matrix(matrix, tuple(assessor.name for assessor in matrix.assessors))
    # A solution that collapsed into one class doubts every label of the other.
    if fit.solution is None or fit.solution.collapsed:
        return doubt
    # A search for a pair that was not fitted may point past the end.
    columns = np.minimum(np.searchsorted(fit.pairs, rows.pairs), len(fit.pairs) - 1)
    is_fitted = fit.pairs[columns] == rows.pairs
    is_same = fit.labels[columns] == rows.relevant
    doubt[is_fitted] = np.where(is_same, 1 - fit.probability[columns], fit.probability[columns])[is_fitted]
    return doubt


def _group_texts(texts: dict[int, str], keys: Integers, alike: float, words: int) -> Integers:
    groups = groups_of(texts, alike, words)
    return np.array([groups[key] for key in keys.tolist()], dtype=np.int64)


def _read_texts(rows: Any, keys: Integers, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the key and the columns of each row, in the order of the keys."""
    pks = np.unique(keys).tolist()
    for start in range(0, len(pks), PIECE):
        yield from rows.filter(pk__in=pks[start : start + PIECE]).order_by("pk").values_list("pk", *columns)
