"""Clusters of assessors who agree with each other: average linkage of kappa. Pure."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.cohen import cohen_kappas
from annotation.agreement.measures import NO_ITEM, TOO_FEW, Number, Statistic, build_statistic, estimate_intervals
from annotation.agreement.report import AgreementReport
from annotation.agreement.resampling import CELLS, MISSING, RESAMPLES, Draws, Floats, Grades

FEW = 5  # The agreement of assessors with fewer common pairs is ignored.
LEAST = 0.4  # The lowest mean kappa at which clusters are joined.
MOST = 2_000  # Only so many assessors are clustered, those with most grades.


def cluster_assessors(report: AgreementReport) -> list[dict[str, Any]]:
    """Return the clusters of at least two assessors, the largest first.

    `members`: positions in the report, those with most grades first. `within`, `outside`: mean kappa of
    the couples in the cluster, and of its members with all others, over couples with at least FEW
    common pairs: a Statistic as a mapping; None without such a couple.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    couples = report.measures.pairwise
    graded = np.array([assessor.n for assessor in report.assessors])
    # The distances grow with the square of the assessors. The sort is stable, so that each run clusters the same ones.
    order = np.argsort(-graded, kind="stable")[:MOST]
    if len(order) < 2:
        return []
    position = np.full(len(graded), -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    # Assessors with few common pairs get the distance of kappa 0, so that a cluster needs common pairs.
    kappa = couples.values[:, 0, 0]
    is_measured = np.isfinite(kappa) & (couples.n >= FEW)
    a, b = position[couples.places[:, 0]], position[couples.places[:, 1]]
    between = is_measured & (a >= 0) & (b >= 0)
    distance = np.ones((len(order), len(order)), dtype=np.float32)
    distance[a[between], b[between]] = distance[b[between], a[between]] = 1 - kappa[between]
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    # The number of each assessor's cluster, -1 for assessors that are not clustered.
    label = np.full(len(graded), -1, dtype=np.int64)
    label[order] = fcluster(tree, 1 - LEAST, criterion="distance")
    clusters = []
    for number in np.unique(label[label >= 0]):
        members = [int(assessor) for assessor in order if label[assessor] == number]
        if len(members) < 2:
            continue
        inside = (label[couples.places] == number).sum(axis=1)
        n = sum(report.assessors[assessor].n for assessor in members)
        relevant = sum(report.assessors[assessor].relevant for assessor in members)
        # `inside` is the number of assessors of a couple who are in the cluster.
        positions = [np.flatnonzero(is_measured & (inside == count)) for count in (2, 1)]
        within, outside = (
            asdict(_mean_kappa(report.found.grades, couples.places[rows], kappa[rows])) if len(rows) else None
            for rows in positions
        )
        share = relevant / n if n else None
        clusters.append({"members": members, "within": within, "outside": outside, "graded": n, "prevalence": share})
    return sorted(clusters, key=lambda cluster: (-len(cluster["members"]), cluster["members"]))


def _mean_kappa(grades: Grades, couples: NDArray[np.int64], kappas: Floats) -> Statistic:
    """Return the mean kappa of couples (rows of grades), with an interval over pairs where these are few.

    `n`: the pairs that both assessors of a couple graded, counted up to TOO_FEW, from where no page shows it.
    """
    n, is_shared = 0, np.zeros(grades.shape[1], dtype=np.bool_)
    for a, b in couples:
        is_shared |= (grades[a] != MISSING) & (grades[b] != MISSING)
        if (n := int(is_shared.sum())) >= TOO_FEW:
            break
    low: Number = np.nan
    high: Number = np.nan
    # Above this size the samples of all couples would not fit into memory.
    if n < TOO_FEW and len(couples) * RESAMPLES <= CELLS:
        rows, places = grades[:, is_shared], couples.tolist()

        def measure(weights: Floats) -> Floats:
            """Return the mean over the couples whose kappa is defined, in each resample."""
            sampled = cohen_kappas(weights, rows, places).kappa
            with np.errstate(invalid="ignore"):
                return np.asarray(np.nansum(sampled, axis=1) / np.isfinite(sampled).sum(axis=1))

        ((_mean, low, high),) = estimate_intervals(measure, Draws(np.ones(n, dtype=np.int64), RESAMPLES, 0))
    return build_statistic(float(kappas.mean()), low, high, n, NO_ITEM)
