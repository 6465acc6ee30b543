"""Prism's JSON lines: one pair a row, with the losses that it carries (Prism 3.2)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import Filled, LinesWriter
from annotation.exports.sets.rows import SetRow, newest_label

POINT, SFT = "point-wise", "sft"
YES_NO = {True: "yes", False: "no"}


def training_losses(row: SetRow, target: str, preset: str) -> str:
    """Return `point-wise`, `sft`, both, or nothing."""
    # The released code trains point-wise only where score and label say the same.
    point = preset == "paper" or (row.teacher is not None and (row.teacher > 0.5) == row.relevant)
    # A relevant pair without contribution and evidence has no text to learn; one that is not relevant has: "no".
    sft = bool(target) or not row.relevant
    return ";".join(name for name, is_used in ((POINT, point), (SFT, sft)) if is_used)


class PrismWriter(LinesWriter):
    """Writes a line for each pair. `judges`: names of all who voted, by id and sample."""

    marks_rows = True

    def __init__(self, files: ExportFiles, asked: ExportOptions, judges: Mapping[tuple[int, int], str]) -> None:
        super().__init__(files)
        self.asked = asked
        self.judges = judges
        self.losses: Counter[str] = Counter()
        self.without_target = 0

    def lines(self, filled: Filled) -> Iterator[dict[str, Any]]:
        for row in filled.query.rows:
            target = filled.targets.get(row.pair, "") if row.relevant else ""
            loss = training_losses(row, target, self.asked.preset)
            self.without_target += row.relevant and not target
            self.losses[loss] += 1
            votes = filled.votes.get(row.pair, {})
            yield {
                "query": filled.text.text,
                "document": filled.documents[row.document].whole,
                "loss_type": loss,
                "revised_score": row.teacher,
                "annotated_label": YES_NO[row.relevant],
                "contribution_evidence": target,
                # Every row has the same columns, also for judges who did not vote on it.
                **{
                    f"{name}_annotated_label": YES_NO[votes[judge] == 1] if judge in votes else None
                    for judge, name in self.judges.items()
                },
                "annotated_score": row.annotated_score,
                "query_id": row.query_id,
                "doc_id": row.doc_id,
                "instruction": filled.instruction,
                "source": row.source,
                "origin": row.origin,
                "assumed": row.assumed,
                "synthetic": filled.query.synthetic,
                "labelled_at": newest_label([row]),
                **({"posterior": row.posterior} if self.asked.aggregate else {}),
            }

    def end(self) -> dict[str, Any]:
        """Return how many rows carry which losses, and how many relevant ones have no text."""
        return {"losses": dict(sorted(self.losses.items())), "relevant_without_target": self.without_target}
