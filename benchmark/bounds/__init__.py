"""Ranking bounds: how much the pairs that nobody judged could still change the order of the systems."""

from benchmark.bounds.order import BoundsSystem, Influence, RankingBounds, compute_bounds

__all__ = ["BoundsSystem", "Influence", "RankingBounds", "compute_bounds"]
