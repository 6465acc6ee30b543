"""Prism's JSON lines: one pair a row, with the losses that it carries (FORMATS, P 3.2)."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.sets.batches import Batch, Filled
from annotation.exports.sets.options import SetOptions
from annotation.exports.sets.rows import SetQuery, SetRow

POINT, SFT = "point-wise", "sft"


def training_losses(row: SetRow, target: str, preset: str) -> str:
    """`point-wise`, `sft`, both, or nothing.

    A relevant pair without contribution and evidence has no text to learn; a pair that is not relevant has: "no".
    The released code trains point-wise only where score and label say the same.
    """
    found = []
    if preset == "paper" or (row.teacher is not None and (row.teacher > 0.5) == row.relevant):
        found.append(POINT)
    if target or not row.relevant:
        found.append(SFT)
    return ";".join(found)


class PrismWriter:
    """Writes <split>.jsonl. `judges`: names of all who voted, by id and sample: every row has the same columns."""

    def __init__(self, files: ExportFiles, asked: SetOptions, judges: Mapping[tuple[int, int], str]) -> None:
        self.files = files
        self.asked = asked
        self.judges = judges
        self.losses: Counter[str] = Counter()
        self.without_target = 0

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """The next batches are of this split."""
        self.output = self.files.open(f"{split}.jsonl")

    def add(self, batch: Batch) -> int:
        """Write the rows of whole queries."""
        before = self.output.rows
        for filled in batch:
            for row in filled.query.rows:
                self._write(filled, row)
        return self.output.rows - before

    def _write(self, filled: Filled, row: SetRow) -> None:
        target = filled.targets.get(row.pair, "") if row.relevant else ""
        loss = training_losses(row, target, self.asked.preset)
        self.without_target += row.relevant and not target
        self.losses[loss] += 1
        values = self._values(filled, row, target, loss)
        self.output.put(json.dumps(values, ensure_ascii=False) + "\n", rows=1)

    def _values(self, filled: Filled, row: SetRow, target: str, loss: str) -> dict[str, Any]:
        votes = filled.votes.get(row.pair, {})
        return {
            "query": filled.text.text,
            "document": filled.documents[row.document].whole,
            "loss_type": loss,
            "revised_score": row.teacher,
            "annotated_label": _yes_or_no(row.relevant),
            "contribution_evidence": target,
            **{
                f"{name}_annotated_label": _yes_or_no(votes[judge] == 1) if judge in votes else None
                for judge, name in self.judges.items()
            },
            "annotated_score": row.annotated_score,
            "query_id": row.query_id,
            "doc_id": row.doc_id,
            "instruction": filled.instruction,
            "source": row.source,
            "origin": row.origin,
            "assumed": row.assumed,
        }

    def end(self) -> dict[str, Any]:
        """What the manifest says beside the counts of all sets."""
        return {"losses": dict(sorted(self.losses.items())), "relevant_without_target": self.without_target}


def _yes_or_no(relevant: bool) -> str:
    return "yes" if relevant else "no"
