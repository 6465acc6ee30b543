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
from annotation.label_errors.features import build_features
from annotation.label_errors.margins import score_out_of_fold
from annotation.label_errors.suspicion import Signals
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
    matrix = _binarise(load_grade_matrix(collection), collection.relevant_from)
    against, votes = _count_votes(rows, matrix)
    dawid_skene = _doubt_by_dawid_skene(rows, matrix)
    tell(1, STEPS, _("reading texts"))
    queries, documents = dict(_read_queries(rows.queries)), dict(_read_documents(rows.documents))
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


def _binarise(found: GradeMatrix, mark: int) -> GradeMatrix:
    # A missing grade must stay missing: compared with the mark it would become 0.
    grades = np.where(found.grades == MISSING, MISSING, found.grades >= mark).astype(np.int16)
    return replace(found, grades=grades)


def _count_votes(rows: LabelRows, matrix: GradeMatrix) -> tuple[Integers, Integers]:
    """Count for each label the judges that say otherwise, and all that voted."""
    judges = np.array([one.kind in JUDGES for one in matrix.assessors], dtype=np.bool_)
    given, known = _columns_of(rows, matrix)
    # Judges alone: what people said is the label, or part of it.
    said = given[judges]
    voted = (said != MISSING) & known
    against = voted & (said != rows.relevant)
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


def _columns_of(rows: LabelRows, matrix: GradeMatrix) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Return the grades of the labels' pairs, assessors x labels, and which pairs have any."""
    # Nobody graded anything: there is no last column to look at.
    if not len(matrix.pairs):
        return np.full((len(matrix.assessors), len(rows.pairs)), MISSING, np.int16), np.zeros(len(rows.pairs), np.bool_)
    at = np.minimum(np.searchsorted(matrix.pairs, rows.pairs), len(matrix.pairs) - 1)
    return matrix.grades[:, at], matrix.pairs[at] == rows.pairs


def _group_texts(texts: dict[int, str], keys: Integers, alike: float, words: int) -> Integers:
    groups = groups_of(texts, alike, words)
    return np.array([groups[key] for key in keys.tolist()], dtype=np.int64)


def _read_queries(keys: Integers) -> Iterator[tuple[int, str]]:
    for some in _split_keys(keys):
        yield from Query.objects.filter(pk__in=some).order_by("pk").values_list("pk", "text")


# Titles are part of what a reader and a judge see, so they are part of what makes texts alike.
def _read_documents(keys: Integers) -> Iterator[tuple[int, str]]:
    for some in _split_keys(keys):
        rows: Any = Document.objects.filter(pk__in=some).order_by("pk").values_list("pk", "title", "text")
        yield from ((pk, f"{title}\n{text}" if title else text) for pk, title, text in rows)


def _split_keys(keys: Integers) -> Iterator[list[int]]:
    every = np.unique(keys).tolist()
    for at in range(0, len(every), PIECE):
        yield every[at : at + PIECE]
