"""What the making of a run can be told: each system takes some options, and says which one is wrong."""

import pytest

from benchmark.runs.options import RunOptions
from corpus.errors import BadOption


@pytest.mark.parametrize(
    ("told", "option"),
    [
        ({"system": "sorcery"}, "system"),
        ({"system": "bm25", "judge": "j"}, "judge"),
        ({"system": "bm25", "budget": 1.0}, "budget"),
        ({"system": "bm25", "b": "much"}, "b"),
        ({"system": "bm25", "b": float("nan")}, "b"),
        ({"system": "bm25", "k2": 1}, "k2"),
        ({"system": "embedding", "model": "m", "judge": "j"}, "judge"),
        ({"system": "sparse"}, "model"),
        ({"system": "rewrite"}, "judge"),
        ({"system": "rewrite", "judge": "j", "method": "minmax"}, "method"),
        ({"system": "rewrite", "judge": "j", "samples": 21}, "samples"),
        ({"system": "rewrite", "judge": "j", "over": "magic"}, "over"),
        ({"system": "hybrid", "run": "r", "method": "hyde"}, "method"),
        ({"system": "hybrid", "run": "r", "scores": "odd"}, "scores"),
        ({"system": "hybrid", "run": "r", "weights": [1]}, "weights"),
        ({"system": "hybrid", "run": "r", "weights": "1,x"}, "weights"),
        ({"system": "hybrid", "run": "r", "weights": [1, float("nan")]}, "weights"),
        ({"system": "hybrid", "run": "r", "weights": [0, 0]}, "weights"),
        ({"system": "dense", "judge": "j", "instruction": "a", "query_prefix": "b"}, "query_prefix"),
    ],
)
def test_a_wrong_option_is_named(told, option):
    with pytest.raises(BadOption) as refused:
        RunOptions.read(told)
    assert {name for name, _sentence in refused.value.problems} == {option}


@pytest.mark.parametrize(
    ("told", "name", "recipe"),
    [
        ({}, "bm25", {}),
        ({"k1": 0.9, "depth": 5}, "bm25", {"k1": 0.9}),
        ({"system": "hybrid", "run": "r"}, "hybrid-minmax", {"run": "r", "method": "minmax"}),
        (
            {"system": "rewrite", "judge": "j", "over": "dense:v"},
            "hyde-j",
            {"judge": "j", "method": "hyde", "over": {"kind": "dense", "judge": "v"}},
        ),
        ({"system": "reasoning", "judge": "j"}, "reasoning-j", {"judge": "j", "over": {"kind": "bm25"}}),
        ({"system": "rerank", "run": "r", "judge": "j", "top": 100}, "r+j", {"run": "r", "judge": "j"}),
        ({"system": "rerank-folder", "run": "r", "model": "a/m"}, "r+m", {"run": "r", "model": "a/m"}),
        ({"system": "embedding", "model": "a/m"}, "dense-m", {"model": "a/m"}),
        ({"system": "sparse", "model": "a/m", "name": "own"}, "own", {"model": "a/m"}),
    ],
)
def test_a_run_is_named_after_its_system_and_made_of_what_was_told(told, name, recipe):
    options = RunOptions.read(told)
    about = {"kind": options.system, "name": name, "depth": options.depth}
    assert options.for_job() == recipe | about
