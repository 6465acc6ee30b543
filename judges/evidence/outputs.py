"""Texts of a model, or of a judge for it to learn from, as rows of P table 2 and quantiles of figure 5 (pure).

Rows where label and answer are yes and both fields stand are judged; everything else is counted by rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from charts.translation import gettext_noop
from corpus.evidence import measures
from corpus.evidence.measures import DIMENSIONS, EvidenceOutput, EvidenceTarget


@dataclass(frozen=True, slots=True)
class OutputRow:
    """Answer about one pair. `label`: 1, 0, or None where nobody knows."""

    pair: int
    query: str
    document: str  # Title and text.
    label: int | None
    output: str
    given: bool = False  # The verdict was given to the writer: that it equals the label says nothing.

    @property
    def parsed(self) -> EvidenceOutput:
        """The verdict and the fields of the answer."""
        return measures.parse_output(self.output)

    @property
    def target(self) -> EvidenceTarget | None:
        """Part that can be measured: both fields, where label and answer are yes."""
        parsed = self.parsed
        return parsed.target if parsed.verdict == 1 and self.label == 1 else None


# A judge's answers about one row: its entities, and its scores where there are any.
JudgedOutput = tuple[tuple[str, ...], dict[str, int] | None]


def measures_table(
    rows: Sequence[OutputRow],
    judged: Mapping[int, JudgedOutput] | None = None,
    count: Callable[[str], int] = measures.count_tokens,
) -> dict[str, Any]:
    """Return the table of measures; an undefined mean is null, and `reasons` says why.

    `judged`: by pair; `count`: of lengths.
    """
    entities = {pair: named for pair, (named, _scores) in (judged or {}).items()}
    found = {
        row.pair: measures.measure_target(
            target, query=row.query, document=row.document, named=entities.get(row.pair, ())
        )
        for row in rows
        if (target := row.target) is not None
    }
    labelled = [row for row in rows if row.label is not None and not row.given]
    shares = [one.fidelity for one in found.values() if one.fidelity is not None]
    substrings = [one.fidelity_prism for one in found.values() if one.fidelity_prism is not None]
    ratios = [ratio for row in rows if (ratio := _compression_ratio(row, count)) is not None]
    values: dict[str, float | None] = {
        "label_match": _mean([float(row.label == row.parsed.verdict) for row in labelled]),
        "format": _mean([measures.format_score(row.output) for row in rows]),
        "fidelity": _mean(shares),
        "fidelity_prism": _mean(substrings),
        "language_by_rule": _mean([float(one.language_fits) for one in found.values()]),
    }
    reasons = {name: WHY[name] for name, value in values.items() if value is None}
    return {
        **values,
        "compression": measures.summary_quantiles(ratios),
        "rows": len(rows),
        "labelled": len(labelled),
        "said_yes": sum(row.parsed.verdict == 1 for row in rows),
        "yes_yes": sum(row.parsed.verdict == 1 and row.label == 1 for row in rows),
        "with_fields": len(found),
        "with_entities": len(shares),
        "with_ratio": len(ratios),
        "copied": sum(one.copied for one in found.values()),
        "reasons": reasons | ({} if ratios else {"compression": WHY["compression"]}),
    }


WHY = {
    "label_match": gettext_noop("no row has a label that its writer was not given"),
    "format": gettext_noop("there is no row"),
    "fidelity": gettext_noop("no entity in the evidence of rows where label and answer are yes"),
    "fidelity_prism": gettext_noop("no entity in the evidence of rows where label and answer are yes"),
    "language_by_rule": gettext_noop("no row where label and answer are yes has both fields"),
    "compression": gettext_noop("no row says yes with evidence"),
}


def mean_scores(judged: Mapping[int, JudgedOutput]) -> dict[str, float | None]:
    """Return the six judged columns of P table 2: each the mean over the rows that have scores."""
    scored = [scores for _named, scores in judged.values() if scores is not None]
    return {name: _mean([float(scores[name]) for scores in scored]) for name in DIMENSIONS}


def _compression_ratio(row: OutputRow, count: Callable[[str], int]) -> float | None:
    """Figure 5 takes every row that the model calls relevant, whatever its label."""
    parsed = row.parsed
    if parsed.verdict != 1 or not parsed.evidence:
        return None
    return measures.compression_ratio(parsed.evidence, row.document, count)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
