"""Interpolated precision at a share of the relevant documents, as trec_eval has it since its version 10. Pure.

Up to version 9, which ir_measures' trec_eval is, the number of documents that a recall of r asks for was
floor(r R + 0.9); since then it is r R rounded (m_iprec_at_recall.c), so 10% of 474 is 47 and no longer 48.
"""

from collections.abc import Mapping
from math import floor
from typing import Any

import numpy as np


def is_interpolated(measure: Any) -> bool:
    """One of ir_measures' IPrec@r."""
    return str(getattr(measure, "NAME", "")) == "IPrec"


def interpolated_precision(measure: Any, grades: Mapping[str, int], scores: Mapping[str, float]) -> float:
    """The highest precision at any rank from the one where the recall is reached; 0 where it never is.

    `grades` and `scores` of one query by document; ties by document id, descending.
    """
    given = measure.params
    relevant = {document for document, grade in grades.items() if grade >= given.get("rel", 1)}
    ranked = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    if given.get("judged_only", False):
        ranked = [document for document in ranked if grades.get(document, -1) >= 0]
    found = np.cumsum([document in relevant for document in ranked])
    wanted = floor(given["recall"] * len(relevant) + 0.5)
    if not len(found) or wanted > found[-1]:
        return 0.0
    precisions = found / np.arange(1, len(found) + 1)
    return float(precisions[np.searchsorted(found, wanted) :].max())
