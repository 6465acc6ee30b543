"""The table of the four losses: nDCG@10 of each, its change against the base, and how sure that is (P appendix B)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.significance.tests import Values, add_tests, join_members, mean_changes
from charts.downloads import Cell, DownloadTable
from corpus.errors import BadInput
from training.recipes.table import LOSSES

MEASURE = "nDCG@10"
BASE = "base"
SEED = 0
# What the paper's four recipes gained on its datasets and base: a reference only.
PAPER = "Prism-Reranker, appendix B (Qwen3-Reranker-0.6B, 80 datasets): +2.26 to +2.48 points for all four losses"

ByQuery = Mapping[str, float]


def read_variants(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the models by their loss, in the table's order. Raises BadInput unless nothing but the loss differs."""
    records: dict[Path, dict[str, Any]] = {}
    found: dict[str, Path] = {}
    for folder in folders:
        try:
            record = json.loads((folder / "reranker.json").read_text())
        except (OSError, ValueError):
            raise BadInput(f"{folder} has no reranker.json: name the folder of a trained model") from None
        if record.get("recipe") != "ablation":
            raise BadInput(f"{folder.name} was trained by the recipe {record.get('recipe')}, not by ablation")
        if (loss := str(record["options"]["loss"])) in found:
            raise BadInput(f"{found[loss].name} and {folder.name} both have the loss {loss}: name one model of each")
        found[loss] = folder
        records[folder] = {name: record[name] for name in ("base", "dataset_sha256", "teacher")} | record["options"]
    if missing := [loss for loss in LOSSES["ablation"] if loss not in found]:
        raise BadInput(f"No model has the loss {missing[0]}: train one with it")
    first, *others = records
    for other in others:
        names = (records[first] | records[other]).keys() - {"loss"}
        if differing := [name for name in sorted(names) if records[first].get(name) != records[other].get(name)]:
            raise BadInput(
                f"{first.name} and {other.name} differ in {differing[0]}, not in the loss alone: train them alike"
            )
    return {loss: found[loss] for loss in LOSSES["ablation"]}


def compare_losses(members: Sequence[Mapping[str, ByQuery]]) -> list[dict[str, Any]]:
    """Compare over all members; of each: "base" and every loss -> query -> value, of the same queries.

    Each loss against the base, as the unweighted mean over the members; p and interval are corrected by Holm.
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
    told = mean_changes(joined)
    add_tests({MEASURE: told}, {MEASURE: joined}, losses, SEED, [one.after.shape[1] for one in values])
    return [
        {
            "loss": loss, "base": row["before"], "value": row["after"], "delta": row["change"],
            "low": row["low"], "high": row["high"], "p": row["p_holm"],
            "members": [float(one.after[place].mean()) for one in values],
        }
        for place, (loss, row) in enumerate(zip(losses, told, strict=True))
    ]  # fmt: skip


def loss_table(found: Sequence[Mapping[str, Any]], members: Sequence[str]) -> DownloadTable:
    """Return the four rows, with one column for each member where there are several."""
    several = members if len(members) > 1 else ()
    header = ("loss", *several, "base", MEASURE, "delta", "low (95%)", "high (95%)", "p (Holm)")
    figures = ("base", "value", "delta", "low", "high", "p")
    rows: list[tuple[Cell, ...]] = [
        (one["loss"], *(one["members"] if several else ()), *(one[name] for name in figures)) for one in found
    ]
    return DownloadTable("ablation", f"Losses of distillation. {PAPER}", header, tuple(rows))


def write_tables(folder: Path, measured: Mapping[str, Mapping[str, ByQuery]]) -> dict[str, Any]:
    """Write ablation.csv, ablation.tex and ablation.json; return what the last one holds.

    measured: member -> "base" and every loss -> query -> value.
    """
    results = compare_losses(list(measured.values()))
    table = loss_table(results, list(measured))
    document = {
        "measure": MEASURE,
        "members": {name: len(found[BASE]) for name, found in measured.items()},
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
        chance = "< 0.001" if row["p"] < 0.001 else f"= {row['p']:.3f}"
        interval = f"95% interval {low:+.2f} to {high:+.2f}"
        lines.append(f"{row['loss']:<16} {value:.2f} ({delta:+.2f}; {interval}; p {chance})")
    return [*lines, f"For reference only: {PAPER}"]
