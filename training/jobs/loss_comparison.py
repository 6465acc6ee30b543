"""The table of the four losses: nDCG@10 and its change from the base, with interval and p (Prism appendix B)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.significance.tests import Values, add_tests, join_members, mean_changes, member_weights
from charts.downloads import Cell, DownloadTable
from corpus.errors import BadInput
from training.recipes.table import LOSSES

MEASURE = "nDCG@10"
BASE = "base"
SEED = 0
# The gains of the paper's four recipes on its own datasets and base, for reference only.
PAPER = "Prism-Reranker, appendix B (Qwen3-Reranker-0.6B, 80 datasets): +2.26 to +2.48 points for all four losses"

ByQuery = Mapping[str, float]


def read_variants(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the models by their loss, in the table's order. Raises BadInput unless they differ only in the loss."""
    records: dict[Path, dict[str, Any]] = {}
    by_loss: dict[str, Path] = {}
    for folder in folders:
        try:
            record = json.loads((folder / "reranker.json").read_text())
        except (OSError, ValueError):
            raise BadInput(f"{folder} has no reranker.json: name the folder of a trained model") from None
        if record.get("recipe") != "ablation":
            raise BadInput(f"{folder.name} was trained by the recipe {record.get('recipe')}, not by ablation")
        if (loss := str(record["options"]["loss"])) in by_loss:
            raise BadInput(f"{by_loss[loss].name} and {folder.name} both have the loss {loss}: name one model of each")
        by_loss[loss] = folder
        records[folder] = {name: record[name] for name in ("base", "dataset_sha256", "teacher")} | record["options"]
    if missing := [loss for loss in LOSSES["ablation"] if loss not in by_loss]:
        raise BadInput(f"No model has the loss {missing[0]}: train one with it")
    first, *others = records
    for other in others:
        names = (records[first] | records[other]).keys() - {"loss"}
        if differing := [name for name in sorted(names) if records[first].get(name) != records[other].get(name)]:
            raise BadInput(
                f"{first.name} and {other.name} differ in {differing[0]}, not in the loss alone: train them alike"
            )
    return {loss: by_loss[loss] for loss in LOSSES["ablation"]}


def compare_losses(members: Sequence[Mapping[str, ByQuery]]) -> list[dict[str, Any]]:
    """Compare each loss with the base, as the unweighted mean over all members (collections).

    A member maps "base" and every loss to the values of the same queries. Intervals and p are corrected by Holm.
    """
    losses = list(LOSSES["ablation"])
    values = []
    for member in members:
        queries = sorted(member[BASE])
        before, after = (
            np.array([[member[name][query] for query in queries] for name in names], dtype=np.float64)
            for names in ([BASE] * len(losses), losses)
        )
        values.append(Values(before, after))
    joined = join_members(values)
    changes = mean_changes(joined)
    add_tests({MEASURE: changes}, {MEASURE: joined}, losses, SEED, member_weights(values))
    return [
        {
            "loss": loss, "base": row["before"], "value": row["after"], "delta": row["change"],
            "low": row["low"], "high": row["high"], "p": row["p_holm"],
            "members": [float(member.after[index].mean()) for member in values],
        }
        for index, (loss, row) in enumerate(zip(losses, changes, strict=True))
    ]  # fmt: skip


def loss_table(results: Sequence[Mapping[str, Any]], members: Sequence[str]) -> DownloadTable:
    """Return a row for each of the four losses, with one column for each member if there are several."""
    member_columns = members if len(members) > 1 else ()
    header = ("loss", *member_columns, "base", MEASURE, "delta", "low (95%)", "high (95%)", "p (Holm)")
    figures = ("base", "value", "delta", "low", "high", "p")
    rows: list[tuple[Cell, ...]] = [
        (result["loss"], *(result["members"] if member_columns else ()), *(result[name] for name in figures))
        for result in results
    ]
    return DownloadTable("ablation", f"Losses of distillation. {PAPER}", header, tuple(rows))


def write_tables(folder: Path, measured: Mapping[str, Mapping[str, ByQuery]]) -> dict[str, Any]:
    """Write ablation.csv, ablation.tex and ablation.json, and return the JSON document.

    `measured`: for each member, the values by query of "base" and of every loss.
    """
    results = compare_losses(list(measured.values()))
    table = loss_table(results, list(measured))
    document = {
        "measure": MEASURE,
        "members": {name: len(by_variant[BASE]) for name, by_variant in measured.items()},
        "base": results[0]["base"],
        "losses": results,
        "reference": PAPER,
    }
    for suffix, text in (("csv", table.csv()), ("tex", table.latex()), ("json", json.dumps(document, indent=1))):
        (folder / f"ablation.{suffix}").write_text(text, encoding="utf-8")
    return document


def result_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table for a terminal, in points of nDCG@10, and the paper's figures."""
    lines = [f"base: {MEASURE} {100 * document['base']:.2f}"]
    for row in document["losses"]:
        value, delta, low, high = (100 * row[name] for name in ("value", "delta", "low", "high"))
        p = "< 0.001" if row["p"] < 0.001 else f"= {row['p']:.3f}"
        interval = f"95% interval {low:+.2f} to {high:+.2f}"
        lines.append(f"{row['loss']:<16} {value:.2f} ({delta:+.2f}; {interval}; p {p})")
    return [*lines, f"For reference only: {PAPER}"]
