"""The page of `make proof` from stored figures of a small proof without models."""

import copy
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tools.proof import page
from tools.proof.__main__ import main, write_page

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


def test_times_stand_in_one_line_alone(figures: dict[str, Any]) -> None:
    first, second = (page.render(figures, {**FACTS, "times": times}).splitlines() for times in ("one", "two"))
    assert [line for line in first if line not in second] == ["Times: one."]


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
