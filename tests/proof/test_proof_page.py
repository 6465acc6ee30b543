"""`make proof`: its page from stored figures, and what it computes itself: intervals, samples, pools and judges."""

import copy
import json
import re
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import ir_measures
import pytest
from scipy.stats import beta

from config.env import ROOT
from judges.prompts.render import vote_prompt
from judges.records import Inputs
from tools.proof import cranfield, page
from tools.proof.__main__ import main, write_page
from tools.proof.figures import bootstrap_mean, exact_share
from tools.proof.servers import COPY, YES, scripted_judges

STORED = Path(__file__).with_name("figures.json")
FACTS = {
    "date": "2026-11-30", "machine": "2 cores", "seed": 0, "size": "--queries 10", "depth": 5, "models": "none",
    "times": "import 3 s",
}  # fmt: skip
GAIN: dict[str, Any] = {
    "base": 0.3939, "tuned": 0.41, "difference": 0.0161, "low": 0.004, "high": 0.03, "words": "gain: nDCG@10 +0.016",
    "first_stage": {"name": "BM25", "mean": 0.3432, "difference": 0.0668, "low": 0.03, "high": 0.1},
}  # fmt: skip


@pytest.fixture
def figures() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(STORED.read_text())
    return stored


def test_the_page_has_every_table_and_the_pictures_it_names(figures: dict[str, Any], tmp_path: Path) -> None:
    write_page(tmp_path, figures, FACTS)
    text = (tmp_path / "proof.md").read_text()
    assert "| bm25 | 0.366 (0.333 to 0.400) | 0.704 (0.667 to 0.740) | - |" in text
    assert "| `always-yes` | scripted: yes to everything | 1.00 | 0.000 (0.000 to 0.000) |" in text
    pictures = re.findall(r"\]\((\S+\.svg)\)", text)
    assert len(pictures) == 2
    for name in pictures:
        picture = ElementTree.parse(tmp_path / name).getroot()
        assert picture.tag == "{http://www.w3.org/2000/svg}svg" and len(list(picture.iter())) > 20
    first, second = (page.render(figures, {**FACTS, "times": times}).splitlines() for times in ("one", "two"))
    assert [line for line in first if line not in second] == ["Times: one."]
    headings, kept = re.compile(r"^#+ .*$", re.MULTILINE), ROOT / "docs" / "proof.md"
    assert headings.findall(kept.read_text()) == headings.findall(page.TEMPLATE.read_text())


def test_a_claim_that_the_figures_do_not_bear_out_is_a_no(figures: dict[str, Any]) -> None:
    assert dict(page.checks(figures))["The panel study names `always-yes`"]
    broken = copy.deepcopy(figures)
    for row in broken["agreement"]["judges"]:
        row["passes"] = True
    broken["agreement"]["err_together"] = []
    for audit in broken["audits"].values():
        audit["accuracy"] |= {"low": 0.0, "high": 0.1}
        audit["can_go_out"] = True
    for run in broken["holes"]["runs"]:
        run["high"] = run["full"] - 0.01
    held = {claim for claim, holds in page.checks(figures) if holds}
    lost = {claim for claim, holds in page.checks(broken) if not holds}
    assert held - lost == {"The panel study lets `noisy-copy` pass"}
    assert page.render(broken, FACTS).count("| **no** |") == len(lost)


@pytest.mark.parametrize(("low", "holds"), [(0.004, True), (-0.001, False)])
def test_a_training_gains_where_both_intervals_lie_above_zero(figures: dict[str, Any], low: float, holds: bool) -> None:
    dense = [{"name": name, "nDCG@10": {"value": 0.4, "low": 0.3, "high": 0.5, "n": 9}} for name in ("bm25", "trained")]
    counts = {"train_queries": 112, "held_out": 113, "steps": 70}
    figures["training"] = {**counts, "gain": {**GAIN, "low": low}, "dense": dense}
    *_others, (_claim, holding) = page.checks(figures)
    assert holding is holds
    assert f"+0.016 ({low:+.3f} to +0.030) | +0.067 (+0.030 to +0.100)" in page.render(figures, FACTS)


def test_a_folder_without_cranfield_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cranfield", str(tmp_path)]) == 2
    assert f"--cranfield {tmp_path}: cran.all.1400.xml" in capsys.readouterr().err


GRADES = {("1", "10"): 1, ("1", "11"): 1, ("1", "12"): 1, ("1", "13"): 1, ("2", "20"): 1, ("3", "30"): 0}


def test_an_interval_over_queries_is_seeded_and_holds_the_mean() -> None:
    values = [0.0, 0.25, 0.5, 0.75, 1.0] * 8
    first, again = bootstrap_mean(values, seed=3), bootstrap_mean(values, seed=3)
    assert first == again and first["value"] == 0.5 and first["n"] == 40
    # Half a width of 1.96 standard errors, as of a mean of 40 values.
    assert first["high"] - first["low"] == pytest.approx(2 * 1.96 * 0.3536 / 40**0.5, rel=0.05)
    assert bootstrap_mean([0.5, 0.5], seed=0) == {"value": 0.5, "low": 0.5, "high": 0.5, "n": 2}
    share = exact_share(19, 20)
    assert share["value"] == 0.95
    assert (share["low"], share["high"]) == pytest.approx((beta.ppf(0.025, 19, 2), beta.ppf(0.975, 20, 1)))
    assert exact_share(0, 0)["value"] is None
    same, other = ([0.8, 0.1, 0.3], [0.8, 0.4, 0.3])
    assert page.same_order([0.9, 0.5, 0.7], same) and not page.same_order([0.9, 0.5, 0.7], other)


def test_the_sample_the_pool_and_the_hidden_grades_follow_from_the_seed(tmp_path: Path) -> None:
    assert cranfield.sample_queries(GRADES, 2, 0) == cranfield.sample_queries(GRADES, 2, 0) == ["1", "2"]
    runs = [{"1": ["11", "9", "8"], "2": ["20"]}, {"1": ["9", "10"], "3": ["1"]}]
    assert cranfield.pool(runs, ["1", "2"], 2) == [("1", "9"), ("1", "10"), ("1", "11"), ("2", "20")]
    hidden = cranfield.hide_grades(GRADES, ["1", "2"], 0.5, 7)
    assert hidden == cranfield.hide_grades(GRADES, ["1", "2"], 0.5, 7)
    assert len(hidden) == 3 and ("2", "20") in hidden and hidden.items() <= GRADES.items()
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
