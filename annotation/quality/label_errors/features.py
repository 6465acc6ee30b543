"""Features of how well a query and a document match, from their words alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.search.bm25 import Index
from corpus.search.text import tokenize_text

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Sparse = Any  # A scipy sparse matrix: texts x words.
DIMENSIONS = 100  # Of the latent space.
BEST = 5  # Number of a query's best documents with which the others are compared.
AT_ONCE = 50_000  # Number of pairs whose words are in memory together.


def build_features(
    queries: Mapping[int, str], documents: Mapping[int, str], pairs: Sequence[tuple[int, int]]
) -> Floats:
    """Return pairs x features. `queries` and `documents`: texts by key; `pairs`: (query, document).

    Features: BM25; cosines of TF-IDF and of its latent dimensions; the share of the query's words,
    weighted by rarity, that the document has; and its mean cosine with the best other documents of the
    query. Then each again, standardized over the query's documents.
    """
    # Imported here because scikit-learn takes seconds to load.
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.preprocessing import normalize
    from sklearn.utils.extmath import randomized_svd

    query_positions = {key: position for position, key in enumerate(queries)}
    document_positions = {key: position for position, key in enumerate(documents)}
    a = np.array([query_positions[query] for query, _document in pairs], dtype=np.intp)
    b = np.array([document_positions[document] for _query, document in pairs], dtype=np.intp)
    counter = CountVectorizer(analyzer=tokenize_text)
    try:
        counts = counter.fit_transform(documents.values())
    except ValueError:  # No document has a word.
        return np.zeros((len(pairs), 1))
    query_counts = counter.transform(queries.values())
    weights = TfidfTransformer(sublinear_tf=True).fit(counts)
    texts, query_weights = weights.transform(counts), weights.transform(query_counts)
    # Unit vectors of documents and queries in the dimensions in which the documents differ most.
    size = min(DIMENSIONS, texts.shape[0] - 1, texts.shape[1] - 1)
    latent_texts, latent_queries = np.zeros((texts.shape[0], 1)), np.zeros((query_weights.shape[0], 1))
    if size > 0:
        # A fixed state, so that a repeated search suspects the same labels.
        words = randomized_svd(texts, size, random_state=0)[2]
        latent_texts, latent_queries = normalize(texts @ words.T), normalize(query_weights @ words.T)
    cosine, latent = _multiply_rows(query_weights, texts, a, b), (latent_queries[a] * latent_texts[b]).sum(axis=1)
    rare = (query_counts > 0).multiply(weights.idf_).tocsr()
    # The words of a query that no document has weigh 0: divided by 1, its share is 0 and not undefined.
    total = np.asarray(rare.sum(axis=1)).ravel()[a]
    covered = _multiply_rows(rare, (counts > 0).astype(np.float64), a, b) / np.where(total > 0, total, 1.0)
    # Each document's mean cosine with the other documents of its query that have the best scores.
    scores = cosine + latent
    near = np.zeros(len(a))
    for rows in _split_by_query(a):
        best = rows[np.argsort(-scores[rows], kind="stable")[: BEST + 1]]
        cosines = latent_texts[b[rows]] @ latent_texts[b[best]].T
        # Without the document itself: its cosine of 1 would hide how far the others are.
        others = rows[:, None] != best[None, :]
        near[rows] = (cosines * others).sum(axis=1) / np.maximum(others.sum(axis=1), 1)
    # The index requires descending order. Only scores are read, so the order of ties does not matter.
    index = Index.build(sorted(documents.items(), reverse=True))
    keys = np.array([document for _query, document in pairs], dtype=np.int64)
    query_texts, bm25 = list(queries.values()), np.zeros(len(pairs))
    for rows in _split_by_query(a):
        bm25[rows] = index.scores(query_texts[a[rows[0]]], keys[rows])
    raw = np.stack([bm25, cosine, latent, covered, near], axis=1)
    standardized = np.zeros_like(raw)
    for rows in _split_by_query(a):
        # A query with one document deviates by 0.
        standardized[rows] = (raw[rows] - raw[rows].mean(axis=0)) / (raw[rows].std(axis=0) + 1e-9)
    return np.concatenate([raw, standardized], axis=1)


def _multiply_rows(left: Sparse, right: Sparse, a: Positions, b: Positions) -> Floats:
    """Return the dot products of rows `a` of one matrix with rows `b` of another."""
    products = np.empty(len(a))
    # In parts: one product of all pairs would need memory for the words of all their texts.
    for start in range(0, len(a), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        products[part] = np.asarray(left[a[part]].multiply(right[b[part]]).sum(axis=1)).ravel()
    return products


def _split_by_query(queries: Positions) -> list[Positions]:
    """Return the positions of the pairs of each query."""
    order = np.argsort(queries, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)
