"""Measures by rule of a trained model's texts on the dev split: Prism table 2's first columns, figure 5 (pure).

The other columns need a judge (training.jobs.graded_outputs).
"""

from collections.abc import Callable, Sequence
from typing import Any

from corpus.evidence import measures
from training.recipes.data import Example

MOST_POINTS = 2000  # Points of figure 5 are stored for this many rows, the first ones.


def measure_outputs(
    rows: Sequence[Example], texts: Sequence[str], count: Callable[[str], int], *, words: str = ""
) -> dict[str, Any]:
    """Return the measures of one model; `texts`: its answer to each row; `count`: counts tokens by its tokenizer.

    label_match and format are over all rows, fidelity and language over rows where label and answer are yes and both
    fields exist, compression over rows that the model calls relevant. An undefined measure is None, with a reason.
    """
    outputs = [(row, measures.parse_output(text)) for row, text in zip(rows, texts, strict=True)]
    labelled = [(row.label, output.verdict) for row, output in outputs if row.label is not None]
    relevant = [(row, output) for row, output in outputs if output.verdict == 1 and row.label == 1]
    targets = [
        measures.measure_target(output.target, query=row.query, document=row.document, count=count)
        for row, output in relevant
        if output.target
    ]
    points = [
        (count(row.document), count(output.evidence))
        for row, output in outputs
        if output.verdict == 1 and output.evidence and row.document
    ]
    ratios = [evidence / document for document, evidence in points if document]
    values = {
        "label_match": _mean_or_none([float(label == verdict) for label, verdict in labelled]),
        "format": _mean_or_none([measures.format_score(text) for text in texts]),
        "fidelity": _mean_or_none([target.fidelity for target in targets]),
        "fidelity_prism": _mean_or_none([target.fidelity_prism for target in targets]),
        "language": _mean_or_none([float(target.language_fits) for target in targets]),
    }
    reasons = {
        "label_match": "no row carries a label",
        "format": "there is no row",
        "fidelity": "no number, percentage or date is in the evidence of rows where label and answer are yes",
        "fidelity_prism": "no number, percentage or date is in the evidence of rows where label and answer are yes",
        "language": "no row where label and answer are yes has both contribution and evidence",
    }
    return {
        **values,
        "compression": measures.summary_quantiles(ratios),
        "points": [list(point) for point in points[:MOST_POINTS]],
        "rows": len(texts),
        "labelled": len(labelled),
        "yes_yes": len(relevant),
        "with_fields": len(targets),
        "with_entities": sum(target.fidelity is not None for target in targets),
        "said_yes": sum(output.verdict == 1 for _row, output in outputs),
        "copied": sum(target.copied for target in targets),
        "reasons": {name: reasons[name] for name, value in values.items() if value is None}
        | ({} if ratios else {"compression": "the model wrote no evidence"}),
        "words": words,
    }


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
