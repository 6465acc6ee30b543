"""Clusters of assessors who agree with each other: average linkage of kappa. Pure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.measures import Couples
from annotation.agreement.report import AgreementReport

FEW = 5  # The agreement of assessors with fewer common pairs is ignored.
LEAST = 0.4  # The lowest mean kappa at which clusters are joined.
MOST = 2_000  # Only so many assessors are clustered, those with most grades.


def cluster_assessors(report: AgreementReport) -> list[dict[str, Any]]:
    """Return the clusters of at least two assessors, the largest first.

    `members`: positions in the report, those with most grades first. `within`, `outside`: mean kappa of
    the couples in the cluster, and of its members with all others, over couples with at least FEW
    common pairs; None without such a couple.
    """
    couples = report.measures.pairwise
    graded = np.array([assessor.n for assessor in report.assessors])
    # The distances grow with the square of the assessors. The sort is stable, so that each run clusters the same ones.
    order = np.argsort(-graded, kind="stable")[:MOST]
    label = _cluster_labels(couples, order, len(graded))
    kappa = couples.values[:, 0, 0]
    is_measured = np.isfinite(kappa) & (couples.n >= FEW)
    clusters = []
    for number in np.unique(label[label >= 0]):
        members = [int(position) for position in order if label[position] == number]
        if len(members) < 2:
            continue
        inside = (label[couples.places] == number).sum(axis=1)
        n = sum(report.assessors[position].n for position in members)
        relevant = sum(report.assessors[position].relevant for position in members)
        # `inside` is the number of assessors of a couple who are in the cluster.
        kappas = [kappa[is_measured & (inside == count)] for count in (2, 1)]
        within, outside = (float(values.mean()) if len(values) else None for values in kappas)
        share = relevant / n if n else None
        clusters.append({"members": members, "within": within, "outside": outside, "graded": n, "prevalence": share})
    return sorted(clusters, key=lambda cluster: (-len(cluster["members"]), cluster["members"]))


def _cluster_labels(couples: Couples, order: NDArray[np.intp], assessors: int) -> NDArray[np.int64]:
    """Return the number of each assessor's cluster, -1 for assessors that are not clustered."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    label = np.full(assessors, -1, dtype=np.int64)
    if len(order) < 2:
        return label
    position = np.full(assessors, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    # Assessors with few common pairs get the distance of kappa 0, so that a cluster needs common pairs.
    distance = np.ones((len(order), len(order)), dtype=np.float32)
    kappa = couples.values[:, 0, 0]
    a, b = position[couples.places[:, 0]], position[couples.places[:, 1]]
    is_measured = np.isfinite(kappa) & (couples.n >= FEW) & (a >= 0) & (b >= 0)
    distance[a[is_measured], b[is_measured]] = distance[b[is_measured], a[is_measured]] = 1 - kappa[is_measured]
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    label[order] = fcluster(tree, 1 - LEAST, criterion="distance")
    return label
