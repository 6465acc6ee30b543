"""Measures on the dev split, and which checkpoint they choose (pure; Prism 5.1 and 5.3).

Scores are sigmoid(margin). A measure that is undefined is null, and `reasons` says why.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.recipes.data import Example

Floats = NDArray[np.float64]
# What decides between checkpoints; the loss on the dev split never does.
CHOSEN_BY = ("label_pearson", "auc", "accuracy")
# Queries with a relevant document, from which on half of them are kept for the test of the gain.
LEAST_TO_SPLIT = 10
BARS = 8  # Of the histogram of lengths.
MOST_CUT = 0.05  # Share of a training's rows that may be cut without a warning.


class Undefined(Exception):
    """A measure has no value on these rows; the message is the reason."""


def sigmoid(margins: Floats) -> Floats:
    """Return 1 / (1 + e^-x), without overflow on large negative margins."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * margins)))


def measure_dev_split(
    margins: Sequence[float], rows: Sequence[Example], *, threshold_margin: float = 0.0
) -> dict[str, Any]:
    """Return every measure of one model on the dev split; margins: raw l_yes - l_no (or an encoder's logit) by row.

    Rows without a label (a teacher's score) count for the teacher's (the label's) measures only.
    """
    raw = np.asarray(margins, dtype=np.float64)
    scores = sigmoid(raw)
    labelled = np.array([row.label is not None for row in rows], dtype=bool)
    taught = np.array([row.teacher is not None for row in rows], dtype=bool)
    truth = np.array([row.label or 0 for row in rows], dtype=np.float64)
    wanted = np.array([row.teacher or 0.0 for row in rows], dtype=np.float64)
    margin, label = raw[labelled], truth[labelled]
    computed: dict[str, Callable[[], float]] = {
        "label_pearson": lambda: pearson_correlation(scores[labelled], label),
        "teacher_pearson": lambda: pearson_correlation(scores[taught], wanted[taught]),
        "auc": lambda: roc_auc(margin, label),
        "accuracy": lambda: accuracy(margin, label, 0.0),
        "accuracy_at_threshold": lambda: accuracy(margin, label, threshold_margin),
    }
    result: dict[str, Any] = dict.fromkeys(computed)
    reasons: dict[str, str] = {}
    for name, compute in computed.items():
        try:
            if not np.isfinite(raw).all():  # a training that diverged: its other checkpoints are still compared
                raise Undefined("the model's scores are not all finite numbers")
            result[name] = compute()
        except Undefined as why:
            reasons[name] = str(why)
    per_query = ndcg_by_query(margins, rows)
    result["ndcg@10"] = float(np.mean(list(per_query.values()))) if per_query else None
    if not per_query:
        reasons["ndcg@10"] = "no query of the dev split has a relevant document"
    return result | {"rows": len(raw), "labelled": len(label), "queries": len(per_query), "reasons": reasons}


def pearson_correlation(left: Floats, right: Floats) -> float:
    """Return Pearson's correlation. Undefined for under two rows, or a constant side."""
    if len(left) < 2:
        raise Undefined("fewer than two rows carry both values")
    one, other = left - left.mean(), right - right.mean()
    scale = float(np.sqrt((one @ one) * (other @ other)))
    if scale < 1e-12:
        raise Undefined("one side has the same value in every row")
    return float(one @ other) / scale


def roc_auc(margins: Floats, truth: Floats) -> float:
    """Return the share of (relevant, not relevant) pairs in the right order; a tie counts half."""
    if len(np.unique(truth)) < 2:
        raise Undefined("every label of the dev split is the same" if len(truth) else "no row carries a label")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, margins))


def accuracy(margins: Floats, truth: Floats, threshold_margin: float) -> float:
    """Return the share of rows whose margin lies above the threshold just where the label is 1."""
    if not len(truth):
        raise Undefined("no row carries a label")
    return float(np.mean((margins > threshold_margin) == (truth == 1)))


def ndcg_by_query(margins: Sequence[float], rows: Sequence[Example], k: int = 10) -> dict[str, float]:
    """Return nDCG@k, linear gain, of queries with a relevant document among labels."""
    groups: dict[str, list[tuple[np.float32, str, int]]] = {}
    for margin, row in zip(margins, rows, strict=True):
        if row.label is not None:
            groups.setdefault(row.query_id, []).append((np.float32(margin), row.doc_id, row.label))
    values = {}
    for query_id, found in groups.items():
        best = sorted((label for *_, label in found), reverse=True)
        if best[0]:
            # As trec_eval orders: score as float32 descending, then document id descending.
            ranked = [label for *_, label in sorted(found, key=itemgetter(0, 1), reverse=True)]
            values[query_id] = _discounted_sum(ranked[:k]) / _discounted_sum(best[:k])
    return values


def _discounted_sum(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(rank + 2) for rank, gain in enumerate(gains)))


def kept_apart(rows: Sequence[Example]) -> set[str]:
    """Return every second of the queries that have a relevant document, in the order of their ids' sha256.

    They have no say in which checkpoint is chosen, so that the test of the gain is not won by
    choosing: the best of four measurements of nothing looks like something. Empty with fewer than
    LEAST_TO_SPLIT such queries.
    """
    found = {row.query_id for row in rows if row.label}
    # By hash and not by chance: the trainer and the pages must keep the same queries apart.
    ordered = sorted(found, key=lambda query_id: sha256(query_id.encode()).digest())
    return set(ordered[1::2]) if len(ordered) >= LEAST_TO_SPLIT else set()


def choose_checkpoint(checkpoints: Sequence[Mapping[str, Any]]) -> tuple[int, list[float], str]:
    """Return the place of the best checkpoint, every checkpoint's mean rank (1 is best), and the choice in words.

    Ranks are over label-Pearson, AUC and accuracy at 0.5; of equal mean ranks the earlier wins.
    Measures that carry `choosing` (of the queries that are not kept apart) are compared by those.
    """
    if not checkpoints:
        raise ValueError("there is no checkpoint to choose from")
    from scipy.stats import rankdata

    checkpoints = [one.get("choosing") or one for one in checkpoints]
    defined = [name for name in CHOSEN_BY if any(one.get(name) is not None for one in checkpoints)]
    if not defined:
        places = [1.0] * len(checkpoints)
        return len(checkpoints) - 1, places, "the last checkpoint: no measure is defined on the dev split"
    # Equal values share the mean of their ranks; an undefined value ranks after all others.
    table = [rankdata([np.inf if one.get(name) is None else -one[name] for one in checkpoints]) for name in defined]
    means = np.mean(table, axis=0)
    # Rounded, so that two means that are equal but for their rounding are a tie, which the earlier checkpoint wins.
    index = int(np.argmin(np.round(means, 9)))
    words = f"best mean rank ({means[index]:.2f}) over {', '.join(defined)} on the dev split"
    return index, means.tolist(), words


def summarize_lengths(lengths: Sequence[int], limit: int) -> dict[str, Any]:
    """Return how long rows are before they are cut: how many are, what would fit 95% of them, and eight bars."""
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
