"""Clusters of assessors who agree with each other: average linkage of kappa. Pure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.measures import Couples
from annotation.agreement.report import AgreementReport

FEW = 5  # Two who graded fewer pairs in common say nothing of each other.
LEAST = 0.4  # Kappa, on the average, with which a cluster holds together.
MOST = 2_000  # Assessors that are looked at: those who graded most.


def cluster_assessors(report: AgreementReport) -> list[dict[str, Any]]:
    """The clusters of two assessors and more, the largest first.

    `members`: places in the report, the busiest first. `within`, `outside`: mean kappa of the
    couples inside, and of members with everybody else, who met on FEW pairs and more; None where
    there is no such couple.
    """
    couples = report.measures.pairwise
    graded = np.array([assessor.n for assessor in report.assessors])
    # The tree of all distances grows with the square of the assessors; a stable order looks at the same in each run.
    order = np.argsort(-graded, kind="stable")[:MOST]
    label = _cluster_labels(couples, order, len(graded))
    kappa = couples.values[:, 0, 0]
    known = np.isfinite(kappa) & (couples.n >= FEW)
    found = []
    for one in np.unique(label[label >= 0]):
        members = [int(place) for place in order if label[place] == one]
        if len(members) < 2:
            continue
        inside = (label[couples.places] == one).sum(axis=1)
        n = sum(report.assessors[place].n for place in members)
        yes = sum(report.assessors[place].relevant for place in members)
        # `inside` counts the ends of a couple that are in the cluster: both, or one.
        values = [kappa[known & (inside == ends)] for ends in (2, 1)]
        within, outside = (float(some.mean()) if len(some) else None for some in values)
        share = yes / n if n else None
        found.append({"members": members, "within": within, "outside": outside, "graded": n, "prevalence": share})
    return sorted(found, key=lambda cluster: (-len(cluster["members"]), cluster["members"]))


def _cluster_labels(couples: Couples, order: NDArray[np.intp], assessors: int) -> NDArray[np.int64]:
    """The cluster of each assessor, -1 for those who were not looked at."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    label = np.full(assessors, -1, dtype=np.int64)
    if len(order) < 2:
        return label
    place = np.full(assessors, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    # Two who hardly met are as far apart as chance, kappa 0, so that a cluster needs meetings, not the want of them.
    apart = np.ones((len(order), len(order)), dtype=np.float32)
    kappa = couples.values[:, 0, 0]
    a, b = place[couples.places[:, 0]], place[couples.places[:, 1]]
    use = np.isfinite(kappa) & (couples.n >= FEW) & (a >= 0) & (b >= 0)
    apart[a[use], b[use]] = apart[b[use], a[use]] = 1 - kappa[use]
    np.fill_diagonal(apart, 0)
    joined = linkage(squareform(apart, checks=False), "average")
    label[order] = fcluster(joined, 1 - LEAST, criterion="distance")
    return label
