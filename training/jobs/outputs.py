"""Measures by rule of a trained model's texts on the dev split: P table 2's first columns and figure 5 (pure).

The judged columns need a judge: the job's page asks one (training.jobs.graded_outputs).
`corpus.evidence.measures` measures the targets that judges write, too.
"""

from collections.abc import Callable, Sequence
from typing import Any

from corpus.evidence import measures
from training.recipes.data import Example

MOST_POINTS = 2000  # Points of figure 5 that are kept: the first rows, whatever comes later.


def measure_outputs(
    rows: Sequence[Example], texts: Sequence[str], count: Callable[[str], int], *, words: str = ""
) -> dict[str, Any]:
    """Measures of one model; texts: its raw answers, one a row; count: tokens by its own tokenizer.

    label_match, format over all rows; fidelity and language over rows where label and answer are
    yes and both fields are there; compression over rows that the model calls relevant. Undefined is
    null, with a reason.
    """
    outputs = [measures.parse_output(text) for text in texts]
    labelled = [(row.label, one.verdict) for row, one in zip(rows, outputs, strict=True) if row.label is not None]
    both = [(row, one) for row, one in zip(rows, outputs, strict=True) if one.verdict == 1 and row.label == 1]
    found = [
        measures.measure_target(one.target, query=row.query, document=row.document, count=count)
        for row, one in both
        if one.target
    ]
    points = [
        (count(row.document), count(one.evidence))
        for row, one in zip(rows, outputs, strict=True)
        if one.verdict == 1 and one.evidence and row.document
    ]
    ratios = [written / size for size, written in points if size]
    values = {
        "label_match": _mean_or_none([float(label == verdict) for label, verdict in labelled]),
        "format": _mean_or_none([measures.format_score(text) for text in texts]),
        "fidelity": _mean_or_none([one.fidelity for one in found]),
        "fidelity_prism": _mean_or_none([one.fidelity_prism for one in found]),
        "language": _mean_or_none([float(one.language_fits) for one in found]),
    }
    why = {
        "label_match": "no row carries a label",
        "format": "there is no row",
        "fidelity": "no number, percentage or date stands in evidence of rows where label and answer are yes",
        "fidelity_prism": "no number, percentage or date stands in evidence of rows where label and answer are yes",
        "language": "no row where label and answer are yes has both contribution and evidence",
    }
    return {
        **values,
        "compression": measures.summary_quantiles(ratios),
        "points": [list(point) for point in points[:MOST_POINTS]],
        "rows": len(texts),
        "labelled": len(labelled),
        "yes_yes": len(both),
        "with_fields": len(found),
        "with_entities": sum(one.fidelity is not None for one in found),
        "said_yes": sum(one.verdict == 1 for one in outputs),
        "copied": sum(one.copied for one in found),
        "reasons": {name: why[name] for name, value in values.items() if value is None}
        | ({} if ratios else {"compression": "the model wrote no evidence"}),
        "words": words,
    }


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
