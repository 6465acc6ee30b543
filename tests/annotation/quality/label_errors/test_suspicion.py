"""How signals become an order, and that no label has a say in the model's score of its own query."""

import numpy as np
import pytest

from annotation.quality.label_errors.features import build_features
from annotation.quality.label_errors.margins import score_out_of_fold
from annotation.quality.label_errors.signals import count_others
from annotation.quality.label_errors.suspicion import PRIOR, Signals, combine_chances, rank_labels

NONE = float("nan")


def chances(*rows: tuple[float, float, float, float]) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    return combine_chances(np.array(rows))


def test_signals_add_what_they_say_beyond_the_prior():
    assert chances((NONE, NONE, NONE, NONE)) == pytest.approx([np.log(PRIOR / (1 - PRIOR))])
    alone, both = chances((NONE, NONE, NONE, 0.5), (NONE, NONE, 0.5, 0.5))
    assert alone == pytest.approx(0.0) and both == pytest.approx(np.log((1 - PRIOR) / PRIOR))
    both, votes = chances((0.8, 0.8, NONE, NONE), (0.8, NONE, NONE, NONE))
    assert both == pytest.approx(votes), "votes and Dawid-Skene are one signal"
    sure, nearly = chances((NONE, NONE, NONE, 1.0), (NONE, NONE, NONE, 0.99))
    assert sure == nearly and np.isfinite(sure), "none is surer than 99%"


def test_more_votes_against_are_worse_and_an_undivided_panel_speaks_for_the_label():
    against, votes = np.array([0, 0, 1, 3, 5]), np.array([0, 5, 1, 5, 5])
    empty, none = np.full(5, NONE), np.zeros(5, dtype=np.int64)
    found = Signals(against, votes, empty, none, none, empty).chances()[:, 0]
    assert np.isnan(found[0]) and found[1] < PRIOR
    assert found[1:] == pytest.approx([0.05 / 6, 1.05 / 2, 3.05 / 6, 5.05 / 6])
    assert rank_labels(combine_chances(np.stack([found, empty, empty, empty], axis=1))).tolist() == [4, 2, 3, 0, 1]


def test_near_duplicates_are_counted_by_the_groups_of_both_texts():
    relevant = np.array([1, 1, 0, 1, 0])
    queries, documents = np.array([7, 7, 7, 7, 8]), np.array([1, 1, 1, 2, 1])
    others, group = count_others(relevant, queries, documents)
    assert (others.tolist(), group.tolist()) == ([1, 1, 2, 0, 0], [3, 3, 3, 1, 1])
    empty, none = np.full(5, NONE), np.zeros(5, dtype=np.int64)
    found = Signals(none, none, empty, others, group, empty).chances()[:, 2]
    assert found[:3] == pytest.approx([1 / 3, 1 / 3, 2 / 3]) and np.isnan(found[3:]).all()


def learnable(queries: int = 30) -> tuple[dict[int, str], dict[int, str], list[tuple[int, int]], list[int]]:
    """Two documents of five of each query have its words."""
    words = [f"word{n}" for n in range(queries)]
    asked = {n: f"what is {word} and other{n}" for n, word in enumerate(words)}
    texts, pairs, labels = {}, [], []
    for n, word in enumerate(words):
        for place in range(5):
            key = 100 + n * 5 + place
            texts[key] = f"{word} other{n} text {place}" if place < 2 else f"unrelated{key} text number {place}"
            pairs.append((n, key))
            labels.append(int(place < 2))
    return asked, texts, pairs, labels


def test_the_model_finds_a_flipped_label_and_never_learns_from_its_own_query():
    asked, texts, pairs, given = learnable()
    features, labels = build_features(asked, texts, pairs), np.array(given)
    groups = np.array([query for query, _document in pairs])
    flipped = np.where(np.arange(len(labels)) == 52, 1 - labels, labels)
    whole, other = (score_out_of_fold(features, one, groups) for one in (labels, flipped))
    assert whole is not None and other is not None
    doubt = np.where(flipped == 1, 1 - other, other)
    assert rank_labels(doubt)[0] == 52
    own = groups == groups[52]
    assert (whole[own] == other[own]).all() and not (whole == other).all()


def test_the_queries_of_one_group_stand_in_one_fold():
    asked, texts, pairs, given = learnable()
    features, labels = build_features(asked, texts, pairs), np.array(given)
    groups = np.array([query // 3 for query, _document in pairs])  # three queries that are nearly the same
    before = score_out_of_fold(features, labels, groups)
    own = groups == 4
    after = score_out_of_fold(features, np.where(own, 1 - labels, labels), groups)
    assert before is not None and after is not None and (before[own] == after[own]).all()


def test_too_few_labels_or_queries_give_no_score_and_texts_without_a_word_have_features():
    features = np.arange(20.0).reshape(-1, 1)
    for labels in ([1] * 20, [1, 0] * 10):
        assert score_out_of_fold(features, np.array(labels), np.arange(20) // 10) is None
        assert score_out_of_fold(features, np.array(labels), np.zeros(20, dtype=np.int64)) is None

    assert build_features({1: ""}, {2: "...", 3: ""}, [(1, 2), (1, 3)]).shape == (2, 1)
    assert np.isfinite(build_features({1: "owl", 4: ""}, {2: "owl", 3: ""}, [(1, 2), (1, 3), (4, 2)])).all()
