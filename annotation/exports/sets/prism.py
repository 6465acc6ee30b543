"""Prism's JSON lines: a pair per line, with its losses (Prism 3.2)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import LinesWriter, LoadedQuery
from annotation.exports.sets.rows import newest_label_time

POINT, SFT = "point-wise", "sft"
YES_NO = {True: "yes", False: "no"}


class PrismWriter(LinesWriter):
    """Writer of a line for each pair. `judges`: names of all judges that voted, by id and sample."""

    marks_synthetic_lines = True

    def __init__(self, files: ExportFiles, options: ExportOptions, judges: Mapping[tuple[int, int], str]) -> None:
        super().__init__(files)
        self.options = options
        self.judges = judges
        self.losses: Counter[str] = Counter()
        self.without_target = 0

    def build_lines(self, query: LoadedQuery) -> Iterator[dict[str, Any]]:
        for row in query.rows:
            target = query.targets.get(row.pair, "") if row.relevant else ""
            # The released code uses the point-wise loss only where score and label agree.
            has_point_loss = self.options.preset == "paper" or (
                row.target_score is not None and (row.target_score > 0.5) == row.relevant
            )
            # A relevant pair without contribution and evidence has no text to learn; the text of others is "no".
            has_sft_loss = bool(target) or not row.relevant
            loss = ";".join(name for name, is_used in ((POINT, has_point_loss), (SFT, has_sft_loss)) if is_used)
            self.without_target += row.relevant and not target
            self.losses[loss] += 1
            votes = query.votes.get(row.pair, {})
            yield {
                "query": query.text,
                "document": query.document_of(row).full_text,
                "loss_type": loss,
                "revised_score": row.target_score,
                "annotated_label": YES_NO[row.relevant],
                "contribution_evidence": target,
                # Every line has the same keys, also for judges that did not vote on the pair.
                **{
                    f"{name}_annotated_label": YES_NO[votes[judge] == 1] if judge in votes else None
                    for judge, name in self.judges.items()
                },
                "annotated_score": row.annotated_score,
                "query_id": row.query_id,
                "doc_id": row.doc_id,
                "instruction": query.instruction,
                "source": row.source,
                "origin": row.origin,
                "assumed": row.assumed,
                "synthetic": query.synthetic,
                "labelled_at": newest_label_time([row]),
                **({"posterior": row.posterior} if self.options.aggregate else {}),
            }

    def end(self) -> dict[str, Any]:
        """Return the number of lines by their losses, and of relevant pairs without a text."""
        return {"losses": dict(sorted(self.losses.items())), "relevant_without_target": self.without_target}
