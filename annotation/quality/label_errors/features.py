"""Features of how query and document go together, from their words alone and no label."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.search.bm25 import Index
from corpus.search.text import tokenize_text

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Sparse = Any  # A scipy sparse matrix: texts x words.
DIMENSIONS = 100  # Of the latent space.
BEST = 5  # Documents of a query that stand for what it asks.
AT_ONCE = 50_000  # Pairs whose words are in memory together.


def build_features(
    queries: Mapping[int, str], documents: Mapping[int, str], pairs: Sequence[tuple[int, int]]
) -> Floats:
    """Return pairs x features. `queries` and `documents`: texts by key; `pairs`: (query, document).

    BM25, cosines of TF-IDF and of its latent dimensions, the share of the query's words, weighted
    by how rare they are, that the document has, and its mean cosine with the query's best other
    documents; then each of them again, against the mean and the deviation of the query's documents.
    """
    # Imported here: it takes seconds to load, and most processes that import this module compute no features.
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.preprocessing import normalize
    from sklearn.utils.extmath import randomized_svd

    query_place = {key: place for place, key in enumerate(queries)}
    document_place = {key: place for place, key in enumerate(documents)}
    a = np.array([query_place[query] for query, _document in pairs], dtype=np.intp)
    b = np.array([document_place[document] for _query, document in pairs], dtype=np.intp)
    counter = CountVectorizer(analyzer=tokenize_text)
    try:
        counts = counter.fit_transform(documents.values())
    except ValueError:  # not a word in any document
        return np.zeros((len(pairs), 1))
    asked = counter.transform(queries.values())
    weights = TfidfTransformer(sublinear_tf=True).fit(counts)
    texts, wanted = weights.transform(counts), weights.transform(asked)
    # Unit vectors of both in the dimensions in which the documents differ most; fewer than there are texts and words.
    size = min(DIMENSIONS, texts.shape[0] - 1, texts.shape[1] - 1)
    latent_texts, latent_queries = np.zeros((texts.shape[0], 1)), np.zeros((wanted.shape[0], 1))
    if size > 0:
        # A fixed state, so that the same labels are suspected when it is computed again.
        words = randomized_svd(texts, size, random_state=0)[2]
        latent_texts, latent_queries = normalize(texts @ words.T), normalize(wanted @ words.T)
    cosine, latent = _multiply_rows(wanted, texts, a, b), (latent_queries[a] * latent_texts[b]).sum(axis=1)
    rare = (asked > 0).multiply(weights.idf_).tocsr()
    # A query of unknown words has no weight to cover; by 1 its share is 0 and not undefined.
    total = np.asarray(rare.sum(axis=1)).ravel()[a]
    covered = _multiply_rows(rare, (counts > 0).astype(np.float64), a, b) / np.where(total > 0, total, 1.0)
    near = _measure_nearness(latent_texts, b, cosine + latent, a)
    raw = np.stack([_score_bm25(queries, documents, pairs, a), cosine, latent, covered, near], axis=1)
    against = np.zeros_like(raw)
    for rows in _split_by_query(a):
        # A query with one document deviates by 0.
        against[rows] = (raw[rows] - raw[rows].mean(axis=0)) / (raw[rows].std(axis=0) + 1e-9)
    return np.concatenate([raw, against], axis=1)


def _score_bm25(
    queries: Mapping[int, str], documents: Mapping[int, str], pairs: Sequence[tuple[int, int]], places: Places
) -> Floats:
    # Built in descending order, which the index wants: here only scores are asked for, so ties do not matter.
    index = Index.build(sorted(documents.items(), reverse=True))
    keys = np.array([document for _query, document in pairs], dtype=np.int64)
    texts, found = list(queries.values()), np.zeros(len(pairs))
    for rows in _split_by_query(places):
        found[rows] = index.scores(texts[places[rows[0]]], keys[rows])
    return found


def _multiply_rows(left: Sparse, right: Sparse, a: Places, b: Places) -> Floats:
    """Return the product of row a of one matrix with row b of another, pair by pair."""
    found = np.empty(len(a))
    # In parts: the product of all pairs at once holds the words of all their texts.
    for at in range(0, len(a), AT_ONCE):
        part = slice(at, at + AT_ONCE)
        found[part] = np.asarray(left[a[part]].multiply(right[b[part]]).sum(axis=1)).ravel()
    return found


def _measure_nearness(vectors: Floats, documents: Places, scores: Floats, queries: Places) -> Floats:
    """Return each document's mean cosine with the best others of its query, by the scores."""
    found = np.zeros(len(queries))
    for rows in _split_by_query(queries):
        best = rows[np.argsort(-scores[rows], kind="stable")[: BEST + 1]]
        cosines = vectors[documents[rows]] @ vectors[documents[best]].T
        # A document is not its own neighbour: a cosine of 1 would hide how far the others are.
        others = rows[:, None] != best[None, :]
        found[rows] = (cosines * others).sum(axis=1) / np.maximum(others.sum(axis=1), 1)
    return found


def _split_by_query(queries: Places) -> list[Places]:
    """Return the places of the pairs of each query."""
    order = np.argsort(queries, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)
