"""Measures of a model's texts, or of a judge's that it is trained on: Prism table 2, quantiles of figure 5. Pure.

Rows with both fields whose label and answer are yes are judged; everything else is counted by rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from charts.translation import gettext_noop
from corpus.evidence import measures
from corpus.evidence.measures import DIMENSIONS, EvidenceOutput, EvidenceTarget


@dataclass(frozen=True, slots=True)
class OutputRow:
    """Answer about one pair. `label`: 1, 0, or None if unknown."""

    pair: int
    query: str
    document: str  # Title and text.
    label: int | None
    output: str
    given: bool = False  # Whether the writer was told the verdict, so that its agreement with the label says nothing.

    @property
    def parsed(self) -> EvidenceOutput:
        """The verdict and the fields of the answer."""
        return measures.parse_output(self.output)

    @property
    def target(self) -> EvidenceTarget | None:
        """Both fields, if label and answer are yes; else None, because nothing can be measured."""
        parsed = self.parsed
        return parsed.target if parsed.verdict == 1 and self.label == 1 else None


# A judge's answers about one row: its entities, and its scores, if any.
JudgedOutput = tuple[tuple[str, ...], dict[str, int] | None]


def measures_table(
    rows: Sequence[OutputRow],
    judged: Mapping[int, JudgedOutput] | None = None,
    count: Callable[[str], int] = measures.count_tokens,
) -> dict[str, Any]:
    """Return the table of measures; an undefined mean is None, with its reason in `reasons`.

    `judged`: the judge's answers by pair; `count`: counts the tokens of a text.
    """
    entities = {pair: row_entities for pair, (row_entities, _scores) in (judged or {}).items()}
    measures_by_pair = {
        row.pair: measures.measure_target(
            target, query=row.query, document=row.document, model_entities=entities.get(row.pair, ())
        )
        for row in rows
        if (target := row.target) is not None
    }
    labelled = [row for row in rows if row.label is not None and not row.given]
    shares = [row_measures.fidelity for row_measures in measures_by_pair.values() if row_measures.fidelity is not None]
    substrings = [
        row_measures.fidelity_prism
        for row_measures in measures_by_pair.values()
        if row_measures.fidelity_prism is not None
    ]
    # Figure 5 includes every row that the model calls relevant, whatever its label.
    ratios = []
    for row in rows:
        parsed = row.parsed
        if parsed.verdict == 1 and parsed.evidence:
            ratio = measures.compression_ratio(parsed.evidence, row.document, count)
            ratios += [ratio] if ratio is not None else []
    values: dict[str, float | None] = {
        "label_match": _mean([float(row.label == row.parsed.verdict) for row in labelled]),
        "format": _mean([measures.format_score(row.output) for row in rows]),
        "fidelity": _mean(shares),
        "fidelity_prism": _mean(substrings),
        "language_by_rule": _mean([float(row_measures.language_fits) for row_measures in measures_by_pair.values()]),
    }
    reasons = {name: WHY[name] for name, value in values.items() if value is None}
    return {
        **values,
        "compression": measures.summary_quantiles(ratios),
        "rows": len(rows),
        "labelled": len(labelled),
        "said_yes": sum(row.parsed.verdict == 1 for row in rows),
        "yes_yes": sum(row.parsed.verdict == 1 and row.label == 1 for row in rows),
        "with_fields": len(measures_by_pair),
        "with_entities": len(shares),
        "with_ratio": len(ratios),
        "copied": sum(row_measures.copied for row_measures in measures_by_pair.values()),
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
    """Return the six judged columns of Prism table 2, each a mean over the rows that have scores."""
    score_rows = [scores for _named, scores in judged.values() if scores is not None]
    return {name: _mean([float(scores[name]) for scores in score_rows]) for name in DIMENSIONS}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
