"""What `make proof` computes itself: intervals over queries, shares, the sample, the pool; and its scripted judges."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

import ir_measures
import pytest
from scipy.stats import beta

from judges.prompts.render import vote_prompt
from judges.records import Inputs
from tools.proof import cranfield, page
from tools.proof.figures import bootstrap_mean, exact_share
from tools.proof.servers import COPY, YES, scripted_judges

GRADES = {("1", "10"): 1, ("1", "11"): 1, ("1", "12"): 1, ("1", "13"): 1, ("2", "20"): 1, ("3", "30"): 0}


def test_an_interval_over_queries_is_seeded_and_holds_the_mean() -> None:
    values = [0.0, 0.25, 0.5, 0.75, 1.0] * 8
    first, again = bootstrap_mean(values, seed=3), bootstrap_mean(values, seed=3)
    assert first == again and first["value"] == 0.5 and first["n"] == 40
    # Half a width of 1.96 standard errors, as of a mean of 40 values.
    assert first["high"] - first["low"] == pytest.approx(2 * 1.96 * 0.3536 / 40**0.5, rel=0.05)
    assert bootstrap_mean([0.5, 0.5], seed=0) == {"value": 0.5, "low": 0.5, "high": 0.5, "n": 2}


def test_a_share_has_its_exact_interval_and_nothing_has_none() -> None:
    share = exact_share(19, 20)
    assert share["value"] == 0.95
    assert (share["low"], share["high"]) == pytest.approx((beta.ppf(0.025, 19, 2), beta.ppf(0.975, 20, 1)))
    assert exact_share(0, 0)["value"] is None
    same, other = ([0.8, 0.1, 0.3], [0.8, 0.4, 0.3])
    assert page.same_order([0.9, 0.5, 0.7], same) and not page.same_order([0.9, 0.5, 0.7], other)


def test_the_sample_the_pool_and_the_hidden_grades_follow_from_the_seed() -> None:
    assert cranfield.sample_queries(GRADES, 2, 0) == cranfield.sample_queries(GRADES, 2, 0) == ["1", "2"]
    runs = [{"1": ["11", "9", "8"], "2": ["20"]}, {"1": ["9", "10"], "3": ["1"]}]
    assert cranfield.pool(runs, ["1", "2"], 2) == [("1", "9"), ("1", "10"), ("1", "11"), ("2", "20")]
    hidden = cranfield.hide_grades(GRADES, ["1", "2"], 0.5, 7)
    assert hidden == cranfield.hide_grades(GRADES, ["1", "2"], 0.5, 7)
    assert len(hidden) == 3 and ("2", "20") in hidden and hidden.items() <= GRADES.items()


def test_files_that_are_written_are_read_again(tmp_path: Path) -> None:
    assert cranfield.read_qrels(cranfield.write_qrels(tmp_path / "qrels", GRADES)) == GRADES
    assert len(list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))) == len(GRADES)
    (tmp_path / "run").write_text("1 Q0 9 2 1.0 x\n1 Q0 10 1 2.0 x\n2 Q0 20 1 0.5 x\n")
    assert cranfield.read_run(cranfield.write_run(tmp_path / "part", tmp_path / "run", ["1"])) == {"1": ["10", "9"]}


def test_scripted_judges_answer_prompts_of_the_product() -> None:
    pairs = {(f"query {n}", f"what document {n}\nsays"): n % 2 for n in range(200)}
    grades = {(cranfield.squeeze(query), cranfield.squeeze(text)): grade for (query, text), grade in pairs.items()}

    def ask(address: str, model: str, query: str, text: str) -> str:
        prompt = vote_prompt(Inputs(query=query, document=text, answers=(), title=""))
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        body = json.dumps({"model": model, "messages": messages}).encode()
        with urlopen(Request(f"{address}/chat/completions", body), timeout=30) as answer:
            content = json.load(answer)["choices"][0]["message"]["content"]
        return str(json.loads(content)["response"])

    with scripted_judges(grades, accuracy=0.9, seed=1) as address:
        assert {ask(address, YES, *pair) for pair in list(pairs)[:4]} == {"yes"}
        answers = [ask(address, COPY, *pair) for pair in pairs]
        assert answers[:20] == [ask(address, COPY, *pair) for pair in list(pairs)[:20]]
    right = sum((answer == "yes") == bool(grade) for answer, grade in zip(answers, pairs.values(), strict=True))
    assert 165 <= right <= 195
