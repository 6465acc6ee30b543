"""Bundles of RTriever: what is read and refused by line, and what each epoch draws."""

from pathlib import Path
from typing import Any

import pytest

from corpus.errors import BadInput
from tests.training_sets import write_export
from training.recipes.bundles import Bundle, Passage, read_rtriever_set
from training.recipes.data import read_training_set


def row(number: int, **values: Any) -> dict[str, Any]:
    sides = {side: [{"doc_id": f"{side}{number}", "text": f"{side} {number}"}] for side in ("positives", "negatives")}
    return {"query_id": f"q{number}", "query": f"question {number}", **sides, "instruction": "Rule."} | values


def write(folder: Path, train: list[dict[str, Any]], dev: tuple[dict[str, Any], ...] = ()) -> Path:
    return write_export(folder, "rtriever", train, dev, collection="books")


def test_train_is_bundles_and_dev_is_pairs_and_another_recipe_refuses_them(tmp_path):
    found = read_rtriever_set(write(tmp_path / "set", [row(1)], (row(2),)))
    sides = [(Passage(f"{side}1", f"{side} 1"),) for side in ("positives", "negatives")]
    assert found.train == [Bundle("q1", "question 1", *sides, "Rule.")]
    assert [(one.query_id, one.doc_id, one.label, one.instruction) for one in found.dev] == [
        ("q2", "positives2", 1, "Rule."),
        ("q2", "negatives2", 0, "Rule."),
    ]
    with pytest.raises(BadInput, match="'rtriever', not prism"):
        read_training_set(tmp_path / "set")


def test_passages_that_a_model_wrote_need_no_ids(tmp_path):
    texts = {"positives": [{"text": "a"}, {"text": "b"}], "negatives": [{"text": "c"}], "synthetic": True}
    (bundle,) = read_rtriever_set(write(tmp_path / "set", [row(1, **texts)])).train
    assert [one.doc_id for one in bundle.positives] == ["q1:positives:0", "q1:positives:1"] and bundle.synthetic


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"negatives": []}, "line 2: query q2 has no negative"),
        ({"positives": []}, "line 2: query q2 has no positive"),
        ({"negatives": [{"doc_id": "positives2", "text": "x"}]}, "line 2: .*positives2 is a positive and a negative"),
        ({"negatives": [{"doc_id": "x", "text": "positives 2"}]}, "line 2: .* x is a positive and a negative"),
        ({"query_id": "q1"}, "line 2: query q1 is already in line 1"),
        ({"positives": [{"doc_id": "x"}]}, "line 2: no field 'text'"),
    ],
)
def test_a_bundle_that_teaches_nothing_is_refused_by_line(tmp_path, values, said):
    with pytest.raises(BadInput, match=said):
        read_rtriever_set(write(tmp_path / "set", [row(1), row(2, **values)]))


def test_draws_are_seeded_and_reach_every_passage():
    passages = tuple(Passage(f"d{n}", f"text {n}") for n in range(6))
    bundle = Bundle("q", "question", passages[:3], passages[3:])
    drawn = [bundle.draw(0, epoch) for epoch in range(40)]
    assert drawn == [bundle.draw(0, epoch) for epoch in range(40)]
    assert {positive for positive, _ in drawn} == {negative for _, negative in drawn} == {0, 1, 2}
    assert drawn != [bundle.draw(1, epoch) for epoch in range(40)]
    assert len(set(drawn)) > 3  # the negative is not tied to the positive
