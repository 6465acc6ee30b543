"""Measures on the dev split, and the choice of a checkpoint by them (pure; Prism 5.1 and 5.3).

Scores are sigmoid(margin). An undefined measure is None, and `reasons` says why.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.recipes.data import Example

Floats = NDArray[np.float64]
# The measures that choose a checkpoint; the loss on the dev split does not.
CHOSEN_BY = ("label_pearson", "auc", "accuracy")
# With this many queries with a relevant document, half of them are kept for the test of the gain.
LEAST_TO_SPLIT = 10
BARS = 8  # Bars of the histogram of lengths.
MOST_CUT = 0.05  # The share of training rows that may be cut without a warning.


class Undefined(Exception):
    """A measure is undefined on these rows; the message is the reason."""


def sigmoid(margins: Floats) -> Floats:
    """Return 1 / (1 + e^-x), without overflow on large negative margins."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * margins)))


def measure_dev_split(
    margins: Sequence[float], rows: Sequence[Example], *, threshold_margin: float = 0.0
) -> dict[str, Any]:
    """Return every measure of a model on the dev split; `margins`: l_yes - l_no, or an encoder's logit, for each row.

    Measures against labels use the rows with a label, those against the teacher the rows with a teacher score.
    """
    raw = np.asarray(margins, dtype=np.float64)
    scores = sigmoid(raw)
    labelled = np.array([row.label is not None for row in rows], dtype=bool)
    taught = np.array([row.teacher is not None for row in rows], dtype=bool)
    labels = np.array([row.label or 0 for row in rows], dtype=np.float64)
    teacher_scores = np.array([row.teacher or 0.0 for row in rows], dtype=np.float64)
    margin, label = raw[labelled], labels[labelled]
    computed: dict[str, Callable[[], float]] = {
        "label_pearson": lambda: pearson_correlation(scores[labelled], label),
        "teacher_pearson": lambda: pearson_correlation(scores[taught], teacher_scores[taught]),
        "auc": lambda: roc_auc(margin, label),
        "accuracy": lambda: accuracy(margin, label, 0.0),
        "accuracy_at_threshold": lambda: accuracy(margin, label, threshold_margin),
    }
    result: dict[str, Any] = dict.fromkeys(computed)
    reasons: dict[str, str] = {}
    for name, compute in computed.items():
        try:
            # If the training diverged, its other checkpoints are still compared.
            if not np.isfinite(raw).all():
                raise Undefined("the model's scores are not all finite numbers")
            result[name] = compute()
        except Undefined as error:
            reasons[name] = str(error)
    per_query = ndcg_by_query(margins, rows)
    result["ndcg@10"] = float(np.mean(list(per_query.values()))) if per_query else None
    if not per_query:
        reasons["ndcg@10"] = "no query of the dev split has a relevant document"
    return result | {"rows": len(raw), "labelled": len(label), "queries": len(per_query), "reasons": reasons}


def pearson_correlation(left: Floats, right: Floats) -> float:
    """Return Pearson's correlation. Raises Undefined for fewer than two rows, or if one side is constant."""
    if len(left) < 2:
        raise Undefined("fewer than two rows carry both values")
    left_deviations, right_deviations = left - left.mean(), right - right.mean()
    scale = float(np.sqrt((left_deviations @ left_deviations) * (right_deviations @ right_deviations)))
    if scale < 1e-12:
        raise Undefined("one side has the same value in every row")
    return float(left_deviations @ right_deviations) / scale


def roc_auc(margins: Floats, labels: Floats) -> float:
    """Return the share of (relevant, not relevant) pairs in the right order; a tie counts half."""
    if len(np.unique(labels)) < 2:
        raise Undefined("every label of the dev split is the same" if len(labels) else "no row carries a label")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, margins))


def accuracy(margins: Floats, labels: Floats, threshold_margin: float) -> float:
    """Return the share of rows whose margin is above the threshold if and only if the label is 1."""
    if not len(labels):
        raise Undefined("no row carries a label")
    return float(np.mean((margins > threshold_margin) == (labels == 1)))


def ndcg_by_query(margins: Sequence[float], rows: Sequence[Example], k: int = 10) -> dict[str, float]:
    """Return nDCG@k with linear gain of each query that has a relevant document, over its labelled documents."""
    groups: dict[str, list[tuple[np.float32, str, int]]] = {}
    for margin, row in zip(margins, rows, strict=True):
        if row.label is not None:
            groups.setdefault(row.query_id, []).append((np.float32(margin), row.doc_id, row.label))
    values = {}
    for query_id, group in groups.items():
        ideal = sorted((label for *_, label in group), reverse=True)
        if ideal[0]:
            # In trec_eval's order: score as float32 descending, then document id descending.
            ranked = [label for *_, label in sorted(group, key=itemgetter(0, 1), reverse=True)]
            values[query_id] = _discounted_sum(ranked[:k]) / _discounted_sum(ideal[:k])
    return values


def _discounted_sum(relevances: Sequence[float]) -> float:
    return float(sum(gain / np.log2(rank + 2) for rank, gain in enumerate(relevances)))


def held_out_queries(rows: Sequence[Example]) -> set[str]:
    """Return the held-out queries: every second one that has a relevant document, in the order of their hashed ids.

    They do not influence which checkpoint is chosen, so that the choice does not bias the test of the gain: the best
    of four measurements of nothing looks like something. Empty with fewer than LEAST_TO_SPLIT such queries.
    """
    relevant_queries = {row.query_id for row in rows if row.label}
    # By hash, so that the trainer and the pages hold out the same queries.
    ordered = sorted(relevant_queries, key=lambda query_id: sha256(query_id.encode()).digest())
    return set(ordered[1::2]) if len(ordered) >= LEAST_TO_SPLIT else set()


def choose_checkpoint(checkpoints: Sequence[Mapping[str, Any]]) -> tuple[int, list[float], str]:
    """Return the index of the best checkpoint, every checkpoint's mean rank (1 is best), and the reason in words.

    Ranks are over label-Pearson, AUC and accuracy at 0.5; of equal mean ranks the earlier checkpoint wins. Where
    measures have `choosing`, measured without the held-out queries, checkpoints are compared by those.
    """
    if not checkpoints:
        raise ValueError("there is no checkpoint to choose from")
    from scipy.stats import rankdata

    compared = [measures.get("choosing") or measures for measures in checkpoints]
    defined = [name for name in CHOSEN_BY if any(measures.get(name) is not None for measures in compared)]
    if not defined:
        ranks = [1.0] * len(compared)
        return len(compared) - 1, ranks, "the last checkpoint: no measure is defined on the dev split"
    # Equal values share the mean of their ranks; an undefined value ranks after all others.
    table = [
        rankdata([np.inf if measures.get(name) is None else -measures[name] for measures in compared])
        for name in defined
    ]
    means = np.mean(table, axis=0)
    # Rounded, so that means that differ only by a rounding error are a tie, which the earlier checkpoint wins.
    index = int(np.argmin(np.round(means, 9)))
    reason = f"best mean rank ({means[index]:.2f}) over {', '.join(defined)} on the dev split"
    return index, means.tolist(), reason


def summarize_lengths(lengths: Sequence[int], limit: int) -> dict[str, Any]:
    """Return the lengths of rows in tokens before they are cut: how many are longer than the limit, which limit
    would fit 95% of them, and a histogram of eight bars.
    """
    values = np.sort(np.asarray(lengths, dtype=np.int64))
    cut, fits = int((values > limit).sum()), int(np.quantile(values, 0.95, method="higher"))
    width = max(1, -(-int(values[-1]) // BARS))
    counts = np.bincount(np.minimum((values - 1) // width, BARS - 1), minlength=BARS)
    words = f"{cut:,} of {len(values):,} rows are longer than {limit:,} tokens and lose the end of their document"
    return {
        "rows": len(values),
        "limit": limit,
        "cut": cut,
        "fits_95": fits,
        "longest": int(values[-1]),
        "width": width,
        "counts": counts.tolist(),
        "words": f"{words}; max_length {fits:,} would fit 95%." if cut > MOST_CUT * len(values) else f"{words}.",
    }
