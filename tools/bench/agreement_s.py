"""agreement_s: seconds to measure 33 assessors x 4,423 pairs and 5 x 200,000, all pairwise, with 1,000 resamples."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.measures import compute_measures as agreement

CASES = (
    ("33 assessors x 4,423 pairs", 33, 4_423, 0.0, 1.0),
    ("33 assessors x 4,423 pairs, 2% of the grades missing", 33, 4_423, 0.02, 1.0),
    ("5 assessors x 200,000 pairs, 2% of the grades missing", 5, 200_000, 0.02, 2.0),
)


def verdicts(assessors: int, pairs: int, missing: float) -> NDArray[np.int64]:
    """Return binary grades, a fifth of them wrong, of which the share `missing` is missing (-1)."""
    random = np.random.default_rng(0)
    true_grades = random.integers(0, 2, pairs)
    grades = np.where(random.random((assessors, pairs)) < 0.2, 1 - true_grades, true_grades)
    grades[random.random(grades.shape) < missing] = -1
    return grades


def measure() -> list[dict[str, Any]]:
    """Return the median of three runs of all measures, for each case."""
    agreement(verdicts(3, 100, 0.1), bootstrap=10)
    figures = []
    for case, assessors, pairs, missing, aim in CASES:
        grades = verdicts(assessors, pairs, missing)
        seconds = []
        for _ in range(3):
            started = time.perf_counter()
            agreement(grades, bootstrap=1_000)
            seconds.append(time.perf_counter() - started)
        value = round(sorted(seconds)[1], 3)
        figures.append({"name": "agreement_s", "case": case, "value": value, "unit": "s", "aim": f"under {aim:g}"})
    return figures
