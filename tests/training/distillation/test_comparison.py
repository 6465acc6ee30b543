"""The table of the four losses: rows, deltas, intervals, members that count alike."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus.errors import BadInput
from tests.called import call
from tests.factories import make_collection, make_document, make_query
from training.jobs.loss_comparison import PAPER, compare_losses, loss_table, read_variants, result_lines
from training.recipes.table import LOSSES

FOUR = LOSSES["ablation"]


def member(queries: int, base: float, lifts: dict[str, float], seed: int = 0) -> dict[str, dict[str, float]]:
    chance = np.random.default_rng(seed)
    first = {f"q{n}": base + 0.1 * float(chance.random()) for n in range(queries)}
    return {"base": first} | {loss: {one: value + lift for one, value in first.items()} for loss, lift in lifts.items()}


def test_four_rows_have_deltas_to_the_base_and_intervals_and_members_count_alike() -> None:
    lifts = dict(zip(FOUR, (0.05, 0.04, 0.0, -0.1), strict=True))
    small, large = member(10, 0.2, lifts), member(200, 0.6, {loss: 2 * lift for loss, lift in lifts.items()}, 1)
    found = compare_losses([small, large])
    assert [one["loss"] for one in found] == list(FOUR)
    for one in found:
        means = [float(np.mean(list(each[one["loss"]].values()))) for each in (small, large)]
        assert one["members"] == pytest.approx(means) and one["value"] == pytest.approx(sum(means) / 2)
        assert one["delta"] == pytest.approx(one["value"] - one["base"]) == pytest.approx(1.5 * lifts[one["loss"]])
        assert one["low"] <= one["delta"] <= one["high"]
    assert found[0]["low"] > 0 and found[0]["p"] < 0.05 and found[3]["high"] < 0
    assert found[2]["low"] <= 0 <= found[2]["high"] and found[2]["p"] == 1.0


def test_the_papers_figures_are_a_reference_and_no_row() -> None:
    found = compare_losses([member(12, 0.3, dict.fromkeys(FOUR, 0.02))])
    table = loss_table(found, ["books"])
    assert [row[0] for row in table.rows] == list(FOUR) and "+2.26 to +2.48" in table.title
    assert table.header == ("loss", "base", "nDCG@10", "delta", "low (95%)", "high (95%)", "p (Holm)")
    assert len(list(csv.reader(table.csv().splitlines()))) == 5 and r"\begin{tabular}" in table.latex()
    lines = result_lines({"base": found[0]["base"], "losses": found})
    assert len(lines) == 6 and lines[-1] == f"For reference only: {PAPER}" and "(+2.00; 95% interval" in lines[1]


def write_record(folder: Path, loss: str, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    options = {"loss": loss, "seed": 0, **changes.pop("options", {})}
    record = {"recipe": "ablation", "base": "b", "dataset_sha256": "0", "teacher": "scores", "options": options}
    (folder / "reranker.json").write_text(json.dumps(record | changes))
    return folder


def test_models_that_differ_in_more_than_the_loss_are_refused(tmp_path: Path) -> None:
    four = [write_record(tmp_path / str(n), loss) for n, loss in enumerate(FOUR)]
    assert read_variants(four[::-1]) == dict(zip(FOUR, four, strict=True))
    with pytest.raises(BadInput, match="the loss list: "):
        read_variants([four[0], *four[2:]])
    other = write_record(tmp_path / "other", "list", options={"seed": 1})
    with pytest.raises(BadInput, match="other differ in seed"):
        read_variants([four[0], other, *four[2:]])
    write_record(tmp_path / "other", "list", dataset_sha256="1")
    with pytest.raises(BadInput, match="differ in dataset_sha256"):
        read_variants([four[0], other, *four[2:]])
    write_record(tmp_path / "other", "list")
    with pytest.raises(BadInput, match=r"both .* loss list: "):
        read_variants([*four, other])
    write_record(tmp_path / "other", "hybrid", recipe="prism")
    with pytest.raises(BadInput, match=r"other .* recipe prism, "):
        read_variants([other])
    with pytest.raises(BadInput, match=r"has no reranker.json"):
        read_variants([tmp_path / "nowhere"])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_command_reranks_every_member_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Four models of random weights: what counts here is the way from runs to the table."""
    pytest.importorskip("torch")
    from tests.tiny_models import tiny

    qrels, run = tmp_path / "qrels.txt", tmp_path / "first.run"
    for name in ("wings", "books"):
        made = make_collection(name)
        for place in range(8):
            make_document(made, f"Document {place} of {name}.", external_id=f"d{place}")
        for place in range(5):
            make_query(made, f"question {place}", external_id=f"q{place}")
    qrels.write_text("".join(f"q{n} 0 d7 1\nq{n} 0 d{n} 1\n" for n in range(5)))
    run.write_text("".join(f"q{n} Q0 d{at} {at + 1} {9 - at} x\n" for n in range(5) for at in range(6)))
    folders = []
    for number, loss in enumerate(FOUR):
        base, yes_id, no_id = tiny(tmp_path / f"model{number}", "qwen3", seed=number)
        from training.recipes.rendering import QUORUM

        record = {"kind": "causal", "prompt": QUORUM.text, "prompt_sha256": QUORUM.sha256, "yes_id": yes_id,
                  "no_id": no_id, "max_length": 320}  # fmt: skip
        folders.append(write_record(base, loss, **record))
    out = tmp_path / "out"
    given = ["loss_ablation", "--models", *folders, "--base", "tiny:qwen3", "--out", out]
    given += ["--member", "wings", run, qrels, "--member", "books", run, qrels]
    done = call(*given, "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert [one["loss"] for one in document["losses"]] == list(FOUR) and document["members"] == {"wings": 5, "books": 5}
    # The run lacks d7, which is relevant to all of them: it is scored all the same.
    assert "d7" in (out / "wings.base.run").read_text()
    assert sorted(path.name for path in out.glob("ablation.*")) == ["ablation.csv", "ablation.json", "ablation.tex"]
    (out / "books.list.run").unlink()
    shutil.rmtree(out / "bases")
    again = call(*given)
    assert again.code == 0 and again.err.count("reranking with") == 1 and "For reference only" in again.out
    assert json.loads((out / "ablation.json").read_text()) == document
    refused = call(*given, "--member", "wings", run, qrels)
    assert refused.code == 2 and "--member wings" in refused.err
