"""Ranking bounds: how much the pairs that nobody judged could still change the order of the systems."""

from benchmark.bounds.order import Influence, RankingBounds, compute_bounds

__all__ = ["Influence", "RankingBounds", "compute_bounds"]
