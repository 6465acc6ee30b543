"""`evaluate`: measures as trec_eval has them, missing queries, ties, bad files, and paired tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmark.measures import compare, evaluate, parse
from benchmark.runs import read_qrels, read_run, write_run
from corpus.errors import BadInput
from tests.conftest import Manage

TREC_EVAL = Path(__file__).parent.parent.parent / "shared" / "data" / "trec_eval"
NAMES = {
    "AP": "map", "RR": "recip_rank", "P@10": "P_10", "P@100": "P_100", "R@100": "recall_100", "Rprec": "Rprec",
    "nDCG": "ndcg", "nDCG@10": "ndcg_cut_10", "nDCG@5": "ndcg_cut_5", "Bpref": "bpref", "Success@10": "success_10",
    "infAP": "infAP", "SetP": "set_P", "SetR": "set_recall", "SetF": "set_F", "NumRet": "num_ret",
    "NumRet(rel=1)": "num_rel_ret", "RR(rel=1)": "recip_rank",
    **{f"{ours}@{k}": f"{theirs}_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)
       for ours, theirs in (("P", "P"), ("R", "recall"), ("nDCG", "ndcg_cut"), ("AP", "map_cut"))},
    **{f"Success@{k}": f"success_{k}" for k in (1, 5)},
    **{f"IPrec@{level / 10}": f"iprec_at_recall_{level / 10:.2f}" for level in range(11)},
}  # fmt: skip


SLACK = 6e-5
"""They print four decimals."""


@pytest.mark.skipif(not TREC_EVAL.exists(), reason="trec_eval's fixtures are not beside the project")
@pytest.mark.parametrize(("run", "expected"), [("results.test", "out.test.aq"), ("results.trunc", "out.test.aqc")])
def test_the_figures_are_trec_evals(run: str, expected: str, tmp_path: Path) -> None:
    """The second run lacks a query and has words behind its lines, which our reader refuses: they are cut off."""
    lines = [line.split()[:6] for line in (TREC_EVAL / run).read_text().splitlines()]
    (tmp_path / "run").write_text("".join(" ".join(columns) + "\n" for columns in lines))
    qrels = read_qrels(TREC_EVAL / "qrels.test")
    result = evaluate(qrels, read_run(tmp_path / "run"), list(NAMES))
    assert len(result.missing) == (1 if run == "results.trunc" else 0)
    told = [line.split() for line in (TREC_EVAL / expected).read_text().splitlines()]
    wanted = {(name, query): float(value) for name, query, value in told if name in NAMES.values()}
    checked = 0
    for ours, theirs in NAMES.items():
        if (theirs, "all") in wanted:
            over = len(qrels) if theirs.startswith("num_") else 1  # trec_eval adds counts up
            assert over * result.means[ours] == pytest.approx(wanted[theirs, "all"], abs=SLACK), ours
            checked += 1
        for query, value in result.per_query[ours].items():
            if (theirs, query) in wanted:
                assert value == pytest.approx(wanted[theirs, query], abs=SLACK), (ours, query)
    assert checked == len(NAMES)


def test_interpolated_precision_by_hand() -> None:
    """Four relevant, of which ranks 2, 3 and 5 hold three: precisions 0, 1/2, 2/3, 2/4, 3/5. A recall of 0.1 asks for
    0.4 documents, rounded to none, one of 0.4 for 1.6, rounded to two, one of 0.9 for 3.6: four, one too many."""
    qrels = {"q": {"a": 1, "b": 2, "c": 1, "d": 1, "x": 0}}
    run = {"q": {"x": 5.0, "a": 4.0, "b": 3.0, "y": 2.0, "c": 1.0}}
    levels = {"0": 2 / 3, "0.1": 2 / 3, "0.4": 2 / 3, "0.75": 3 / 5, "0.9": 0.0}
    means = evaluate(qrels, run, [f"IPrec@{level}" for level in levels]).means
    assert list(means.values()) == pytest.approx(list(levels.values()))
    only = evaluate(qrels, run, "IPrec(rel=2)@1 IPrec(judged_only=True)@0.75 RR").means
    assert only == pytest.approx({"IPrec(rel=2)@1": 1 / 3, "IPrec(judged_only=True)@0.75": 3 / 4, "RR": 1 / 2})
    assert (
        evaluate(qrels, {"q": {}}, "IPrec@0").means == evaluate({"q": {"a": 0}}, run, "IPrec@0").means == {"IPrec@0": 0}
    )


def test_one_measure_under_two_names_has_one_value() -> None:
    assert evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "RR RR(rel=1)").means == {"RR": 1.0, "RR(rel=1)": 1.0}


def test_a_query_that_the_run_lacks_counts_nothing_and_is_counted() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
    result = evaluate(qrels, {"q1": {"a": 2.0}, "q9": {"a": 1.0}}, "RR nDCG@10")
    assert result.missing == ["q2", "q3"] and result.queries == 3
    assert result.means == pytest.approx({"RR": 1 / 3, "nDCG@10": 1 / 3})
    assert evaluate(qrels, {}, "RR").means == {"RR": 0.0}


def test_ties_are_broken_by_document_id_descending_on_32_bits() -> None:
    close = {"a": 1.0 + 1e-9, "b": 1.0}
    assert evaluate({"q": {"b": 1}}, {"q": close}, "RR").means["RR"] == 1.0
    assert evaluate({"q": {"a": 1}}, {"q": close}, "RR").means["RR"] == 0.5


def test_ndcg_by_hand() -> None:
    """Grades 3, 0, 2 at ranks 1 to 3, linear gain: (3 + 2/2) / (3 + 2/log2(3))."""
    value = evaluate({"q": {"a": 3, "b": 0, "c": 2}}, {"q": {"a": 3, "b": 2, "c": 1}}, "nDCG@10").means["nDCG@10"]
    assert value == pytest.approx(4 / (3 + 2 / 1.5849625007))


def test_paired_tests_see_a_difference_and_do_not_see_none() -> None:
    better = {f"q{n}": 0.6 for n in range(12)}
    worse = {f"q{n}": 0.5 for n in range(12)}
    found = compare("nDCG@10", better, worse)
    assert found.difference == pytest.approx(0.1) and found.p == pytest.approx(2 / 2**12)
    assert found.low == pytest.approx(0.1) and found.queries == 12
    assert compare("nDCG@10", better, dict(better)).p == 1.0
    mixed = {f"q{n}": 0.5 + (0.1 if n % 2 else -0.1) for n in range(40)}
    many = compare("nDCG@10", mixed, {f"q{n}": 0.5 for n in range(40)})
    assert many.p > 0.5 and many.low < 0 < many.high


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q1 Q0 d1 1 nan tag\n", "line 1: the score is not a number"),
        ("q1 Q0 d1 1 inf tag\n", "line 1: the score is infinite"),
        ("q1 Q0 d1 1 2.0 tag\n\nq1 Q0 d1 2 1.0 tag\n", 'line 3: document "d1" stands twice for query "q1"'),
        ("q1 d1 2.0\n", "line 1: 3 columns instead of the 6 of a run"),
        ("", "holds no line: it is not a run"),
    ],
)
def test_a_bad_run_is_refused_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(BadInput, match=words):
        read_run(tmp_path / "run")


def test_qrels_of_both_forms_and_their_faults(tmp_path: Path) -> None:
    (tmp_path / "trec").write_text("q1 0 d1 -1\nq1 0 d2 2\n")
    (tmp_path / "beir").write_text("query-id\tcorpus-id\tscore\nq1\td1\t0\nq1\td2\t2\n")
    assert read_qrels(tmp_path / "trec") == read_qrels(tmp_path / "beir") == {"q1": {"d1": 0, "d2": 2}}
    (tmp_path / "bad").write_text("q1 0 d1 1\nq1 0 d1 2\nq1 0 d3 x\n")
    with pytest.raises(
        BadInput, match=r'line 2: document "d1" has another grade .*; line 3: the grade is not an integer'
    ):
        read_qrels(tmp_path / "bad")
    with pytest.raises(BadInput, match="'nonsense' is no measure"):
        parse("nDCG@10 nonsense")


def test_a_run_is_written_as_it_is_read(tmp_path: Path) -> None:
    ranking = {"q2": {"a": 1.5, "b": 2.25}, "q1": {"x": -0.000123456789, "y": -0.000123456789}}
    assert write_run(tmp_path / "run", ranking, "tag") == 4
    assert [line.split()[2] for line in (tmp_path / "run").read_text().splitlines()] == ["b", "a", "y", "x"]
    again = read_run(tmp_path / "run")
    assert again["q2"] == ranking["q2"] and again["q1"]["x"] == pytest.approx(-0.000123456789)


@pytest.mark.django_db(transaction=True)
def test_the_command_prints_what_the_contract_says(manage: Manage, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "one").write_text("q1 Q0 a 1 2 t\n")
    (tmp_path / "two").write_text("q1 Q0 a 1 2 t\nq2 Q0 b 1 1 t\n")
    asked: list[Any] = ["evaluate", "--qrels", tmp_path / "qrels", "--measures", "RR R@100", "--json"]
    found = manage(*asked, "--run", tmp_path / "one", "--per-query", "--against", tmp_path / "two").json
    assert found["queries"] == 2 and found["missing_queries"] == 1
    assert found["measures"] == {"RR": 0.5, "R@100": 0.5}
    assert found["per_query"]["RR"] == {"q1": 1.0, "q2": 0.0}
    assert found["against"][0]["measures"]["RR"] == 1.0 and found["against"][0]["paired"][0]["difference"] == -0.5
    bad = manage(*asked, "--run", tmp_path / "qrels", check=False)
    assert bad.code == 2 and bad.out == "" and "line 1: 4 columns instead of the 6 of a run" in bad.err
    json.dumps(found)
