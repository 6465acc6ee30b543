"""How far the difference of two rankings can move while pairs are unjudged, for every measure of the gate."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.bounds.differences import Differences, compare_rankings, read_measures
from benchmark.measures.rankings import evaluate_run
from corpus.errors import BadOption

QUERY = 7
MEASURES = ["nDCG@3", "nDCG(dcg='exp-log2')@3", "P@3", "R@3", "R(rel=1)@2", "Hit@2", "RR", "RR@2", "AP", "AP@3"]
World = tuple[list[int], list[int], dict[int, int], int]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A new and an old ranking of one query, what is judged of it, and the highest grade."""
    top = draw(st.integers(1, 3))
    documents = list(range(1, draw(st.integers(1, 5)) + 1))
    new, old = (draw(st.permutations(documents))[: draw(st.integers(0, 5))] for _ in range(2))
    judged = {document: draw(st.integers(0, top)) for document in documents if draw(st.booleans())}
    judged |= {100 + n: draw(st.integers(0, top)) for n in range(draw(st.integers(0, 2)))}
    return new, old, judged, top


def differences_of(name: str, world: World, relevant_from: int = 1) -> tuple[Differences, int]:
    new, old, judged, top = world
    measure = read_measures(name, relevant_from=relevant_from, top=top)[name]
    documents = sorted(judged)
    grades = np.array([judged[document] for document in documents], np.int16)
    rankings = [{QUERY: np.array(ranking, np.int64)} for ranking in (new, old)]
    rows = {QUERY: (np.array(documents, np.int64), grades)}
    return compare_rankings(measure, *rankings, rows, [QUERY], top), measure.k or max(len(new), len(old), 1)


def measured(name: str, ranking: list[int], judged: dict[int, int]) -> float:
    """The value that ir_measures gives."""
    scores = {str(document): float(-rank) for rank, document in enumerate(ranking)}
    qrels = {"q": {str(document): grade for document, grade in judged.items()} or {"none": 0}}
    return evaluate_run(qrels, {"q": scores} if scores else {}, name).means[name]


@pytest.mark.parametrize("name", MEASURES)
@given(world=worlds())
def test_bounds_of_a_difference_are_its_extremes_over_every_completion(name, world):
    new, old, judged, top = world
    differences, k = differences_of(name, world)
    assert differences.new[0] == pytest.approx(measured(name, new, judged), abs=1e-5)
    assert differences.old[0] == pytest.approx(measured(name, old, judged), abs=1e-5)
    unjudged = sorted({*new[:k], *old[:k]} - set(judged))
    completions = [
        judged | dict(zip(unjudged, grades, strict=True))
        for grades in itertools.product((0, top), repeat=len(unjudged))
    ]
    if name.startswith("nDCG"):
        completions = [
            judged | dict(zip(unjudged, grades, strict=True))
            for grades in itertools.product(range(top + 1), repeat=len(unjudged))
        ]
    values = [
        float(full.new[0] - full.old[0])
        for full in (differences_of(name, (new, old, completion, top))[0] for completion in completions)
    ]
    least, most = float(differences.least[0]), float(differences.most[0])
    assert least <= min(values) + 1e-9 and most >= max(values) - 1e-9
    if differences.is_exact:
        assert (least, most) == pytest.approx((min(values), max(values)))
    # A document that does not decide changes nothing, whatever else is judged.
    deciding = {document for _query, document in differences.deciding}
    by_deciding: dict[Any, set[float]] = {}
    for completion, value in zip(completions, values, strict=True):
        key = tuple(completion[document] for document in sorted(deciding))
        by_deciding.setdefault(key, set()).add(round(value, 9))
    assert all(len(same) == 1 for same in by_deciding.values())


@pytest.mark.parametrize(
    "text", ["nDCG", "Judged@10", "R(judged_only=True)@10", "no such@10", "", "ERR@10", "R(rel=9)@10"]
)
def test_a_measure_without_bounds_is_refused(text):
    with pytest.raises(BadOption) as refused:
        read_measures(text, relevant_from=1, top=3)
    assert [name for name, _sentence in refused.value.problems] == ["measures"]


def test_a_measure_takes_what_is_relevant_from_the_collection_or_from_its_name():
    measures = read_measures("R@5, P(rel=3)@5 nDCG@5", relevant_from=2, top=3)
    assert [measure.relevant_from for measure in measures.values()] == [2, 3, 2]
