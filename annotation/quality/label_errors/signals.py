"""The signals of a collection's labels: judges' votes, Dawid-Skene, near-duplicates, and a model out of fold."""

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
from jobs.results import Tell

# Jaccard similarity of shingles from which texts count as near-duplicates.
QUERIES_ALIKE, DOCUMENTS_ALIKE = 0.9, 0.8
MOST = 100_000  # Newest labels that are looked at: their texts are in memory together.
PIECE = 2_000  # Texts that are read at a time.
STEPS = 4
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelRows:
    """The labels that are looked at. `relevant`: 0 or 1; `complete`: no label was left out."""

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
    # One more than are looked at: it shows that others were left out.
    found = list(labels.values_list("pair", "pair__query", "pair__document", "grade")[: MOST + 1])
    # Sorted by pair, because the lookups below are by binary search.
    table = np.array(sorted(found[:MOST]), dtype=np.int64).reshape(-1, 4)
    pairs, queries, documents, grades = table.T
    relevant = (grades >= collection.relevant_from).astype(np.int64)
    return LabelRows(pairs, queries, documents, grades, relevant, len(found) <= MOST)


def gather_signals(collection: Collection, rows: LabelRows, tell: Tell) -> Signals:
    """Compute all signals that speak against labels; a signal stays empty where the collection has too little data."""
    tell(0, STEPS, _("reading votes"))
    given = load_grade_matrix(collection)
    # A missing grade must stay missing: compared with the mark it would become 0.
    relevant = np.where(given.grades == MISSING, MISSING, given.grades >= collection.relevant_from)
    matrix = replace(given, grades=relevant.astype(np.int16))
    against, votes = _count_votes(rows, matrix)
    dawid_skene = _doubt_by_dawid_skene(rows, matrix)
    tell(1, STEPS, _("reading texts"))
    # Titles are part of what a reader and a judge see, so they are part of what makes texts alike.
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
    # Of two probabilities the one for the other label is what counts as doubt.
    model = np.full(len(pairs), np.nan) if scores is None else np.where(rows.relevant == 1, 1 - scores, scores)
    tell(STEPS, STEPS, "")
    return Signals(against, votes, dawid_skene, others, group, model)


def count_others(relevant: Integers, queries: Integers, documents: Integers) -> tuple[Integers, Integers]:
    """Count for each label the pairs of near-duplicate texts that carry the other label, and all of them with itself.

    `queries` and `documents`: the groups of the pairs' texts.
    """
    _keys, group = np.unique(np.stack([queries, documents], axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    sizes, ones = np.bincount(group), np.bincount(group, weights=relevant).astype(np.int64)
    others: Integers = np.where(relevant == 1, sizes[group] - ones[group], ones[group])
    return others, sizes[group]


def _count_votes(rows: LabelRows, matrix: GradeMatrix) -> tuple[Integers, Integers]:
    """Count for each label the judges that say otherwise, and all that voted: what people said is the label itself."""
    judges = np.array([one.kind in JUDGES for one in matrix.assessors], dtype=np.bool_)
    # Nobody graded anything: there is no last column to look at.
    if not len(matrix.pairs):
        return np.zeros(len(rows.pairs), np.int64), np.zeros(len(rows.pairs), np.int64)
    at = np.minimum(np.searchsorted(matrix.pairs, rows.pairs), len(matrix.pairs) - 1)
    votes = matrix.grades[judges][:, at]
    voted = (votes != MISSING) & (matrix.pairs[at] == rows.pairs)
    against = voted & (votes != rows.relevant)
    return against.sum(axis=0), voted.sum(axis=0)


def _doubt_by_dawid_skene(rows: LabelRows, matrix: GradeMatrix) -> NDArray[np.float64]:
    """Return the probability of the other label; NaN for pairs without a grade, and all where it cannot be used."""
    doubt = np.full(len(rows.pairs), np.nan)
    found = fit_matrix(matrix, tuple(one.name for one in matrix.assessors))
    # A solution that collapsed into one class doubts every label of the other.
    if found.solution is None or found.solution.collapsed:
        return doubt
    # A search may point one past the end; whether it found the pair is asked in the next line.
    at = np.minimum(np.searchsorted(found.pairs, rows.pairs), len(found.pairs) - 1)
    known = found.pairs[at] == rows.pairs
    same = found.labels[at] == rows.relevant
    doubt[known] = np.where(same, 1 - found.probability[at], found.probability[at])[known]
    return doubt


def _group_texts(texts: dict[int, str], keys: Integers, alike: float, words: int) -> Integers:
    groups = groups_of(texts, alike, words)
    return np.array([groups[key] for key in keys.tolist()], dtype=np.int64)


def _read_texts(rows: Any, keys: Integers, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield key and columns of the rows, in the order of their keys."""
    every = np.unique(keys).tolist()
    for at in range(0, len(every), PIECE):
        yield from rows.filter(pk__in=every[at : at + PIECE]).order_by("pk").values_list("pk", *columns)
