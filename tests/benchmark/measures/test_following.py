"""p-MRR (FollowIR), worked by hand, and `evaluate --changed-run`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.measures.following import became_irrelevant, p_mrr, rank_change_score
from corpus.errors import BadInput
from tests.called import call


def run_of(*documents: str) -> dict[str, float]:
    """Scores that give this order."""
    return {document: float(-rank) for rank, document in enumerate(documents)}


def test_p_mrr_by_hand():
    """q1: b from 2 to 4: 1 - 2/4. c from 3 to 1: 1/3 - 1. Mean -1/12. q2: x from 1 to missing, rank 3: 1 - 1/3."""
    original = {"q1": run_of("a", "b", "c", "d"), "q2": run_of("x", "y")}
    changed = {"q1": run_of("c", "a", "d", "b"), "q2": run_of("y", "z")}
    found = p_mrr(original, changed, {"q1": {"b", "c"}, "q2": {"x"}, "q3": set()})
    assert found["per_query"] == pytest.approx({"q1": (0.5 - 2 / 3) / 2, "q2": 2 / 3})
    assert found["value"] == pytest.approx((-1 / 12 + 2 / 3) / 2)
    assert (found["queries"], found["documents"], found["missing"]) == (2, 3, [])
    assert rank_change_score(2, 8) == pytest.approx(1 - 2 / 8)  # it went down, as told
    assert rank_change_score(8, 2) == pytest.approx(2 / 8 - 1)  # it went up
    assert rank_change_score(3, 3) == 0
    found = p_mrr({"q": run_of("a", "b", "c")}, {}, {"q": {"c"}})
    assert found["missing"] == ["q"] and found["value"] == pytest.approx(1 / 3 - 1)  # from 3 to rank 1 of an empty run
    assert p_mrr({"q": run_of("a")}, {"q": run_of("a")}, {"q": {"b"}})["value"] == 0  # missing in both: 2 and 2


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_turning_the_change_round_turns_the_sign(rank, new_rank):
    assert rank_change_score(rank, new_rank) == pytest.approx(-rank_change_score(new_rank, rank))
    assert -1 < rank_change_score(rank, new_rank) < 1


def test_what_became_irrelevant_was_relevant_and_is_judged_otherwise_now():
    before = {"q1": {"a": 2, "b": 1, "c": 0, "d": 1}, "q2": {"x": 1}}
    after = {"q1": {"a": 0, "b": 1, "c": 0}, "q2": {"x": 1}}
    assert became_irrelevant(before, after) == {"q1": {"a"}}  # nobody judged d again: unknown
    assert became_irrelevant(before, {"q1": {"a": 1}}, relevant_from=2) == {"q1": {"a"}}
    assert became_irrelevant(before, {"q1": {"a": -1}}) == {}, "in the pool, and not judged"
    with pytest.raises(BadInput, match="became irrelevant"):
        p_mrr({}, {}, {})


def test_the_command_takes_the_changed_run_and_qrels(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 1\n")
    (tmp_path / "new-qrels").write_text("q1 0 a 1\nq1 0 b 0\n")
    (tmp_path / "run").write_text("q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\n")
    (tmp_path / "new-run").write_text("q1 Q0 a 1 3 t\nq1 Q0 c 2 2 t\nq1 Q0 b 3 1 t\n")
    asked = ["evaluate", "--qrels", tmp_path / "qrels", "--run", tmp_path / "run", "--measures", "RR"]
    changed = ["--changed-run", tmp_path / "new-run", "--changed-qrels", tmp_path / "new-qrels"]
    found = call(*asked, *changed, "--per-query", "--json").json["following"]
    assert found["p-MRR"] == pytest.approx(1 - 2 / 3) and found["per_query"] == {"q1": pytest.approx(1 / 3)}
    assert "p-MRR              +0.3333  (1 documents" in call(*asked, *changed).out
    refused = call(*asked, *changed[:2])
    assert refused.code == 2 and "p-MRR needs both" in refused.err
