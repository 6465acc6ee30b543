"""`evaluate`: measures as trec_eval has them, missing queries, ties, bad files, and paired tests."""

from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from hypothesis import example, given
from hypothesis import strategies as st

from benchmark.measures.rankings import compare_runs, evaluate_run, parse_measures, split_measures
from benchmark.runs.files import read_qrels, read_run, write_run
from benchmark.significance import paired
from corpus.errors import BadInput
from tests.called import call

TREC_EVAL = Path(__file__).parents[4] / "shared" / "data" / "trec_eval"
NAMES = {
    "AP": "map", "RR": "recip_rank", "P@10": "P_10", "P@100": "P_100", "R@100": "recall_100", "Rprec": "Rprec",
    "nDCG": "ndcg", "nDCG@10": "ndcg_cut_10", "nDCG@5": "ndcg_cut_5", "Bpref": "bpref", "Success@10": "success_10",
    "infAP": "infAP", "SetP": "set_P", "SetR": "set_recall", "SetF": "set_F", "NumRet": "num_ret",
    "NumRet(rel=1)": "num_rel_ret", "NumRel": "num_rel", "NumQ": "num_q", "RR(rel=1)": "recip_rank",
    "Hit@10": "success_10",
    **{f"{ours}@{k}": f"{theirs}_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)
       for ours, theirs in (("P", "P"), ("R", "recall"), ("nDCG", "ndcg_cut"), ("AP", "map_cut"))},
    **{f"Success@{k}": f"success_{k}" for k in (1, 5)},
    **{f"IPrec@{level / 10}": f"iprec_at_recall_{level / 10:.2f}" for level in range(11)},
}  # fmt: skip


SLACK = 6e-5
"""They print four decimals."""


@pytest.mark.skipif(not TREC_EVAL.exists(), reason="trec_eval's fixtures are not beside the project")
@pytest.mark.parametrize(("run", "expected"), [("results.test", "out.test.aq"), ("results.trunc", "out.test.aqc")])
def test_the_figures_are_trec_evals(run, expected, tmp_path):
    """The second run lacks a query and has words behind its lines, which our reader refuses: they are cut off."""
    lines = [line.split()[:6] for line in (TREC_EVAL / run).read_text().splitlines()]
    (tmp_path / "run").write_text("".join(" ".join(columns) + "\n" for columns in lines))
    qrels = read_qrels(TREC_EVAL / "qrels.test")
    result = evaluate_run(qrels, read_run(tmp_path / "run"), list(NAMES))
    assert len(result.missing) == (1 if run == "results.trunc" else 0)
    told = [line.split() for line in (TREC_EVAL / expected).read_text().splitlines()]
    wanted = {(name, query): float(value) for name, query, value in told if name in NAMES.values()}
    checked = 0
    for ours, theirs in NAMES.items():
        if (theirs, "all") in wanted:
            assert result.means[ours] == pytest.approx(wanted[theirs, "all"], abs=SLACK), ours
            checked += 1
        for query, value in result.per_query[ours].items():
            if (theirs, query) in wanted:
                assert value == pytest.approx(wanted[theirs, query], abs=SLACK), (ours, query)
    assert checked == len(NAMES)


@pytest.mark.skipif(not TREC_EVAL.exists(), reason="trec_eval's fixtures are not beside the project")
def test_a_grade_of_minus_1_means_unjudged_as_in_trec_eval():
    """304 rows of these qrels are -1; trec_eval was asked with -l 2."""
    qrels, run = read_qrels(TREC_EVAL / "qrels.rel_level"), read_run(TREC_EVAL / "results.test")
    assert sum(grade == -1 for of in qrels.values() for grade in of.values()) == 304
    names = {"Bpref(rel=2)": "bpref", "infAP(rel=2)": "infAP", "AP(rel=2)": "map", "nDCG@10": "ndcg_cut_10",
             "NumRet(rel=2)": "num_rel_ret"}  # fmt: skip
    found = evaluate_run(qrels, run, list(names))
    told = [line.split() for line in (TREC_EVAL / "out.test.aql").read_text().splitlines()]
    for name, query, value in told:
        for ours in (ours for ours, theirs in names.items() if theirs == name):
            got = found.means[ours] if query == "all" else found.per_query[ours][query]
            assert got == pytest.approx(float(value), abs=SLACK), (name, query)
    clipped = {query: {one: max(0, grade) for one, grade in of.items()} for query, of in qrels.items()}
    as_zero = evaluate_run(clipped, run, "infAP(rel=2)").means["infAP(rel=2)"]
    assert (as_zero, found.means["infAP(rel=2)"]) == pytest.approx((0.1667, 0.1792), abs=SLACK)


def test_minus_1_by_hand():
    """Bpref: of a and b the first has nothing judged above it, the second one of the one judged not relevant.

    n is in the pool and nobody judged it: as not relevant it would stand above both.
    """
    qrels = {"q": {"a": 1, "b": 2, "x": 0, "n": -1}}
    run = {"q": {"n": 4.0, "a": 3.0, "x": 2.0, "b": 1.0}}
    found = evaluate_run(qrels, run, "Bpref Judged@2 IPrec(judged_only=True)@0.5 NumRel NumRelRet Compat").means
    assert found["Bpref"] == pytest.approx((1 + 0) / 2) and found["Judged@2"] == 0.5
    assert found["IPrec(judged_only=True)@0.5"] == 1.0 and found["NumRel"] == found["NumRelRet"] == 2


def test_a_query_that_the_run_lacks_counts_nothing_and_is_counted():
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
    result = evaluate_run(qrels, {"q1": {"a": 2.0}, "q9": {"a": 1.0}}, "RR RR(rel=1) nDCG@10")
    assert result.missing == ["q2", "q3"] and result.queries == 3
    assert result.means == pytest.approx({"RR": 1 / 3, "RR(rel=1)": 1 / 3, "nDCG@10": 1 / 3})
    assert evaluate_run(qrels, {}, "RR").means == {"RR": 0.0}
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1, "d": 2}}
    found = evaluate_run(qrels, {"q1": {"a": 2.0, "x": 1.0}}, "NumQ NumRel NumRet NumRelRet P@1").means
    assert found == {"NumQ": 2, "NumRel": 3, "NumRet": 2, "NumRelRet": 1, "P@1": 0.5}
    # Grades 3, 0, 2 at ranks 1 to 3, linear gain: (3 + 2/2) / (3 + 2/log2(3)).
    found = evaluate_run({"q": {"a": 3, "b": 0, "c": 2}}, {"q": {"a": 3, "b": 2, "c": 1}}, "nDCG@10").means
    assert found["nDCG@10"] == pytest.approx(4 / (3 + 2 / 1.5849625007))


@pytest.mark.parametrize("name", ["RR@2", "RR", "ERR@2", "Judged@1", "Compat", "nDCG@2", "nDCG(dcg='exp-log2')@2"])
def test_ties_are_broken_by_document_id_descending_in_every_measure(name):
    """b comes before a of the same score, on 32 bits; programs behind ir_measures would rather have what came first."""
    told = {"q": {"b": 2.0, "a": 1.0}}
    for a in (1.0, 1.0 + 1e-9):
        for qrels in ({"q": {"b": 1}}, {"q": {"a": 1}}):
            assert evaluate_run(qrels, {"q": {"a": a, "b": 1.0}}, name).means == evaluate_run(qrels, told, name).means


WRONG = [
    "nDCG@0", "P@0", "AP@0", "R@0", "Success@0", "Hit@0", "RR@0", "Judged@0", "Accuracy@0", "ERR@0", "nDCG(cutoff=0)",
    "nDCG@1.5", "P", "nDCG@True", "P(rel=0)@10", "AP(rel=-1)", "AP(rel='x')", "AP(nope=1)", "Bpref@10", "IPrec@1.5",
    "IPrec@-1", "IPrec@'x'", "IPrec@1e400", "nDCG@99999999999999999999", "P(rel=99999999999)@10", "RBP", "RBP@10",
    "SDCG@10", "BPM@10", "ERR", "alpha_nDCG@10", "ERR_IA@20", "StRecall@10", "nDCG(gains={1:0.5})@10", "NumRel@10",
    "nDCG(dcg='log3')@10", "nDCG(cutoff=5)@10", "nDCG(cutoff=5,cutoff=6)", "SetF(beta=-1)", "Compat(p=2)", "nDCG@",
    "@10", "(", "(" * 300, "-" * 5000 + "1", "a@" * 2000 + "1", "nDCG@1and", "__import__('os')", "nDCG\x00", "Hit",
    "nDCG(**{'cutoff':1})", "1", "Hit@10@5", "nDCG@10;P@1", "ndcg@10", "map", "nDCG@010",
]  # fmt: skip


@pytest.mark.parametrize("name", WRONG, ids=lambda name: ascii(name)[:24])
def test_a_wrong_measure_is_refused_in_one_line(name):
    with pytest.raises(BadInput) as told:
        evaluate_run({"q": {"a": 1}}, {"q": {"a": 1.0}}, [name])
    assert "\n" not in str(told.value) and "object at" not in str(told.value)


piece = st.sampled_from(["(", ")", "@", ",", "=", "rel", "cutoff", "judged_only", "True", "None", "dcg", "recall",
                         "beta", "{", "}", ":", "'", "0", "1", "2", "10", "-", ".5", "1.0", "gains", "p"])  # fmt: skip
known = st.sampled_from(["nDCG", "P", "R", "AP", "RR", "Hit", "Success", "Bpref", "IPrec", "Judged", "SetF", "NumRel",
                         "NumRet", "Accuracy", "Compat", "infAP", "Rprec", "RBP", "alpha_nDCG"])  # fmt: skip
written = st.one_of(
    st.text(max_size=20),
    st.builds(lambda name, rest: name + "".join(rest), known, st.lists(piece, max_size=8)),
    st.builds("{}@{}".format, known, st.integers()),
    st.builds("{}(rel={})@{}".format, known, st.integers(), st.one_of(st.integers(), st.floats())),
)


@given(written)
@example("nDCG(rel=1)@1")
def test_whatever_is_written_as_a_measure_has_values_or_is_refused(name):
    """Nothing else: no traceback, no warning, and no end of the process in the C code of a program."""
    qrels = {"q1": {"a": 2, "b": 0, "c": 1, "n": -1}, "q2": {"b": 1}}
    run = {"q1": {"a": 3.0, "x": 2.0, "n": 1.5, "c": 1.0}, "q2": {"z": 1.0}}
    try:
        found = evaluate_run(qrels, run, [name])
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        assert all(np.isfinite(value) for value in found.means.values())


def test_what_programs_do_not_take_is_refused_but_queries_of_any_name_are():
    """One document of grade 2 at rank 1, of grades up to 4: (2^2 - 1) / 2^4."""
    for grade, name, why in ((5, "ERR@10", "for grades up to 4"), (1, "Accuracy@10", "cannot be computed from these")):
        with pytest.raises(BadInput, match=f"{name} .*{why}"):
            evaluate_run({"q": {"a": grade}}, {"q": {"a": 1.0}}, name)
    assert evaluate_run({"a-b 1": {"d": 2}}, {"a-b 1": {"d": 1.0}}, "ERR@10").means["ERR@10"] == pytest.approx(3 / 16)


def test_interpolated_precision_by_hand():
    """Four relevant, of which ranks 2, 3 and 5 hold three: precisions 0, 1/2, 2/3, 2/4, 3/5. A
    recall of 0.1 asks for 0.4 documents, rounded to none, one of 0.4 for 1.6, rounded to two, one
    of 0.9 for 3.6: four, one too many."""
    qrels = {"q": {"a": 1, "b": 2, "c": 1, "d": 1, "x": 0}}
    run = {"q": {"x": 5.0, "a": 4.0, "b": 3.0, "y": 2.0, "c": 1.0}}
    levels = {"0": 2 / 3, "0.1": 2 / 3, "0.4": 2 / 3, "0.75": 3 / 5, "0.9": 0.0}
    means = evaluate_run(qrels, run, [f"IPrec@{level}" for level in levels]).means
    assert list(means.values()) == pytest.approx(list(levels.values()))
    only = evaluate_run(qrels, run, "IPrec(rel=2)@1 IPrec(judged_only=True)@0.75 RR").means
    assert only == pytest.approx({"IPrec(rel=2)@1": 1 / 3, "IPrec(judged_only=True)@0.75": 3 / 4, "RR": 1 / 2})
    for some, ranked in ((qrels, {"q": {}}), ({"q": {"a": 0}}, run)):
        assert evaluate_run(some, ranked, "IPrec@0").means == {"IPrec@0": 0}


def test_paired_tests_see_a_difference_and_do_not_see_none():
    better = {f"q{n}": 0.6 for n in range(12)}
    worse = {f"q{n}": 0.5 for n in range(12)}
    found = compare_runs("nDCG@10", better, worse)
    assert found.difference == pytest.approx(0.1) and found.p == pytest.approx(2 / 2**12)
    assert found.low == pytest.approx(0.1) and found.queries == 12
    assert compare_runs("nDCG@10", better, dict(better)).p == 1.0
    mixed = {f"q{n}": 0.5 + (0.1 if n % 2 else -0.1) for n in range(40)}
    many = compare_runs("nDCG@10", mixed, {f"q{n}": 0.5 for n in range(40)})
    assert many.p > 0.5 and many.low < 0 < many.high
    few = compare_runs("nDCG@10", {"q1": 0.9, "q2": 0.8}, {"q1": 0.1, "q2": 0.2})
    assert (few.p, few.low, few.high) == (0.5, -1.0, 1.0), "two queries exclude no difference"


differences = st.lists(st.integers(-10, 10).map(lambda tenth: tenth / 10), min_size=2, max_size=24)


@given(st.lists(differences, min_size=1, max_size=5))
def test_interval_and_p_are_one_test_and_never_contradict_each_other(columns):
    """Alone, and corrected by Holm over several systems; and each bound is where the test of it turns."""
    queries = min(map(len, columns))
    values = np.array([one[:queries] for one in columns]).T
    tests = paired.Tests(np.column_stack([values, np.zeros(queries)]), 0)
    p = [tests.p(at, len(columns)) for at in range(len(columns))]
    for at, corrected, level in zip(range(len(columns)), paired.holm_correction(p), paired.holm_levels(p), strict=True):
        low, high = tests.interval(at, len(columns), level)
        assert low <= values[:, at].mean() + 1e-9 and values[:, at].mean() - 1e-9 <= high
        assert (low > 0 or high < 0) == (corrected < paired.LEVEL)
        for bound, outside in ((low, low - 1e-4), (high, high + 1e-4)):
            if abs(bound) < 1:
                moved = paired.Tests(np.column_stack([values[:, at] - outside, np.zeros(queries)]), 0)
                assert moved.p(0, 1) < level


def test_a_bad_run_is_refused_with_its_line_and_a_run_of_ranks_has_its_first_rank_first(tmp_path):
    path = tmp_path / "run"
    for text, words in (
        ("q1 d1\n", "line 1: 2 columns instead of the 6 of a run"),
        ("q1 d1 1\nq1 Q0 d2 2 1.0 tag\n", "line 2: 6 columns instead of 3, as in the first line"),
        ("q1 d1 1\nq1 d2 two\n", "line 2: the score is not a number"),
    ):
        path.write_text(text)
        with pytest.raises(BadInput, match=words):
            read_run(path)
    path.write_text("q1\td2\t2\nq1\td1\t1\nq2\td2\t1\n")
    ranked = [list(found.items()) for found in read_run(path).values()]
    assert ranked == [[("d1", -1.0), ("d2", -2.0)], [("d2", -1.0)]]


def test_qrels_of_both_forms_and_their_faults(tmp_path):
    (tmp_path / "trec").write_text("q1 0 d1 -1\nq1 0 d2 2\n")
    (tmp_path / "beir").write_text("query-id\tcorpus-id\tscore\nq1\td1\t0\nq1\td2\t2\n")
    assert read_qrels(tmp_path / "trec") == {"q1": {"d1": -1, "d2": 2}}
    assert read_qrels(tmp_path / "beir") == {"q1": {"d1": 0, "d2": 2}}
    (tmp_path / "bad").write_text("q1 0 d1 1\nq1 0 d1 2\nq1 0 d3 x\n")
    with pytest.raises(BadInput, match=r'line 2: document "d1" .*; line 3: '):
        read_qrels(tmp_path / "bad")
    with pytest.raises(BadInput, match="'nonsense' is not a measure"):
        parse_measures("nDCG@10 nonsense")


def test_a_run_is_written_as_it_is_read(tmp_path):
    ranking = {"q2": {"a": 1.5, "b": 2.25}, "q1": {"x": -0.000123456789, "y": -0.000123456789}}
    assert write_run(tmp_path / "run", ranking, "tag") == 4
    assert [line.split()[2] for line in (tmp_path / "run").read_text().splitlines()] == ["b", "a", "y", "x"]
    again = read_run(tmp_path / "run")
    assert again["q2"] == ranking["q2"] and again["q1"]["x"] == pytest.approx(-0.000123456789)


@pytest.mark.django_db
def test_the_command_prints_what_the_contract_says(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b -1\nq2 0 b 1\n")
    (tmp_path / "one").write_text("q1 Q0 a 1 2 t\n")
    (tmp_path / "two").write_text("q1 Q0 a 1 2 t\nq2 Q0 b 1 1 t\n")
    asked = ["evaluate", "--qrels", tmp_path / "qrels", "--measures", "RR R@100, NumRelRet", "--json"]
    found = call(*asked, "--run", tmp_path / "one", "--per-query", "--against", tmp_path / "two").json
    assert found["queries"] == 2 and found["missing_queries"] == 1
    assert found["measures"] == {"RR": 0.5, "R@100": 0.5, "NumRelRet": 1.0}
    assert found["per_query"]["RR"] == {"q1": 1.0, "q2": 0.0}
    [other] = found["against"]
    assert other["measures"] == {"RR": 1.0, "R@100": 1.0, "NumRelRet": 2.0}
    paired_tests = {row["measure"]: row["difference"] for row in other["paired"]}
    assert paired_tests == {"RR": -0.5, "R@100": -0.5}, "means are tested, and no counts"
    bad = call(*asked, "--run", tmp_path / "qrels")
    assert bad.code == 2 and bad.out == "" and "line 1: 4 columns" in bad.err
    assert split_measures("SetF(beta=2.0,rel=2),RR") == ["SetF(beta=2.0,rel=2)", "RR"] and split_measures(",") == []


@pytest.mark.django_db
def test_the_command_ends_a_wrong_measure_with_exit_2_and_one_line(tmp_path, capfd):
    """Also what programs behind ir_measures write to the process's own standard error."""
    (tmp_path / "qrels").write_text("q1 0 a 1\n")
    (tmp_path / "run").write_text("q1 Q0 a 1 2 t\n")
    files = ("--qrels", str(tmp_path / "qrels"), "--run", str(tmp_path / "run"))
    with pytest.raises(SystemExit) as ended:
        call_command("evaluate", *files, "--measures", "nDCG@10 RBP", "--json")
    told = capfd.readouterr()
    assert ended.value.code == 2 and told.out == "" and told.err.count("\n") == 1 and "Traceback" not in told.err
