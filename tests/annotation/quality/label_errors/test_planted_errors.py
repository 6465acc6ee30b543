"""Flipped labels on real text: Cranfield, whose documents were all judged for every query (issue 16, check 7)."""

import numpy as np
import pytest

from annotation.quality.label_errors.features import build_features
from annotation.quality.label_errors.margins import Floats, score_out_of_fold
from annotation.quality.label_errors.suspicion import Signals, combine_chances, rank_labels
from config.env import ROOT
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection, Document, Judgment, Query
from corpus.search.bm25 import index_for

CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
DEPTH, SHARE, SEEDS = 20, 0.05, range(5)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db,
    pytest.mark.skipif(
        not CRANFIELD.is_dir(), reason="shared/data/cranfield is not beside the checkout: 1 test not run"
    ),
]


def measure(
    order: "np.ndarray[tuple[int], np.dtype[np.intp]]", flipped: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
) -> tuple[float, float]:
    """Precision in the first 5% and recall in the first 10%."""
    first, more = order[: round(0.05 * len(order))], order[: round(0.1 * len(order))]
    return float(flipped[first].mean()), float(flipped[more].sum() / flipped.sum())


def confident_learning(labels: "np.ndarray[tuple[int], np.dtype[np.int64]]", scores: Floats) -> Floats:
    """Northcutt, Athalye and Mueller (2021): first what is confidently the other class, each by self-confidence."""
    mine, other = np.where(labels == 1, scores, 1 - scores), np.where(labels == 1, 1 - scores, scores)
    thresholds = np.array([(1 - scores)[labels == 0].mean(), scores[labels == 1].mean()])
    return (other >= thresholds[1 - labels]) + (1 - mine) / 2


def test_planted_errors_are_found_by_the_model_alone():
    """The first 20 documents of BM25 for each query, 5% of the labels flipped. Nobody voted: the hardest case."""
    files = ImportFiles(
        corpus=CRANFIELD / "cran.all.1400.xml",
        queries=CRANFIELD / "cran.qry.xml",
        qrels=CRANFIELD / "cranqrel.trec.txt",
        options=ImportOptions(query_ids="position", empty="keep"),
    )
    import_collection("cranfield", files)
    collection = Collection.objects.get(name="cranfield")
    queries = dict(Query.objects.filter(collection=collection).order_by("pk").values_list("pk", "text"))
    documents = {
        pk: f"{title}\n{text}"
        for pk, title, text in Document.objects.filter(collection=collection)
        .order_by("pk")
        .values_list("pk", "title", "text")
    }
    relevant = set(Judgment.objects.filter(grade__gte=1).values_list("pair__query", "pair__document"))
    index = index_for(collection)
    pairs = [(query, document) for query, text in queries.items() for document, _score in index.search(text, DEPTH)]
    truth = np.array([int(pair in relevant) for pair in pairs])
    features, groups = build_features(queries, documents, pairs), np.array([query for query, _document in pairs])
    none, empty = np.zeros(len(pairs), dtype=np.int64), np.full(len(pairs), np.nan)
    ours, theirs = [], []
    for seed in SEEDS:
        flipped = np.zeros(len(pairs), dtype=np.bool_)
        flipped[np.random.default_rng(seed).choice(len(pairs), round(SHARE * len(pairs)), replace=False)] = True
        labels = np.where(flipped, 1 - truth, truth)
        scores = score_out_of_fold(features, labels, groups)
        assert scores is not None
        doubt = np.where(labels == 1, 1 - scores, scores)
        signals = Signals(none, none, empty, none, none, doubt)
        ours.append(measure(rank_labels(combine_chances(signals.chances())), flipped))
        theirs.append(measure(rank_labels(confident_learning(labels, scores)), flipped))
    print(f"{len(pairs)} labels, {round(SHARE * len(pairs))} flipped, seeds {list(SEEDS)}")
    for name, found in (("ours", ours), ("confident learning", theirs)):
        precisions, recalls = ([round(one[place], 3) for one in found] for place in (0, 1))
        print(f"{name}: precision in the first 5% {precisions}, recall in the first 10% {recalls}")
    assert min(precision for precision, _recall in ours) > 0.5
    assert min(recall for _precision, recall in ours) > 0.6
    assert np.mean(ours, axis=0)[1] >= np.mean(theirs, axis=0)[1]
