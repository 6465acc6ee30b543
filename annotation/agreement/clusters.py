"""Clusters of assessors who agree with each other more than with the rest: average linkage of kappa. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.measures import Couples
from annotation.agreement.report import AgreementReport

FEW = 5  # Two who graded fewer pairs in common say nothing of each other.
LEAST = 0.4  # Kappa, on the average, with which a cluster holds together.
MOST = 2_000  # Assessors that are looked at: those who graded most.


@dataclass(frozen=True, slots=True)
class Cluster:
    """Some assessors, by their places in the report, the busiest first."""

    members: tuple[int, ...]
    # Mean kappa of the couples inside who met on FEW pairs and more; None where there is no such couple.
    within: float | None
    outside: float | None  # The same of its members with everybody else.
    graded: int
    prevalence: float | None


def cluster_assessors(report: AgreementReport) -> list[Cluster]:
    """Clusters of two and more, the largest first. Who is in none shares too little, or agrees too little."""
    couples = report.measures.pairwise
    assert isinstance(couples, Couples)
    graded = np.array([one.n for one in report.assessors])
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
        within, outside = (_mean_or_none(kappa[known & (inside == ends)]) for ends in (2, 1))
        found.append(Cluster(tuple(members), within, outside, n, yes / n if n else None))
    return sorted(found, key=lambda cluster: (-len(cluster.members), cluster.members))


def _mean_or_none(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def _cluster_labels(couples: Couples, order: NDArray[np.intp], assessors: int) -> NDArray[np.int64]:
    """The cluster of each assessor, -1 for those who were not looked at.

    Two who hardly met are as far apart as chance: kappa 0. So a cluster needs meetings, not the want of them.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    label = np.full(assessors, -1, dtype=np.int64)
    if len(order) < 2:
        return label
    place = np.full(assessors, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    apart = np.ones((len(order), len(order)), dtype=np.float32)
    kappa = couples.values[:, 0, 0]
    a, b = place[couples.places[:, 0]], place[couples.places[:, 1]]
    use = np.isfinite(kappa) & (couples.n >= FEW) & (a >= 0) & (b >= 0)
    apart[a[use], b[use]] = apart[b[use], a[use]] = 1 - kappa[use]
    np.fill_diagonal(apart, 0)
    joined = linkage(squareform(apart, checks=False), "average")
    label[order] = fcluster(joined, 1 - LEAST, criterion="distance")
    return label
