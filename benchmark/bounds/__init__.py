"""How safe is today's ranking of the systems: what the pairs that nobody judged could still change."""

from benchmark.bounds.order import BoundsSystem, Influence, RankingBounds, compute_bounds

__all__ = ["BoundsSystem", "Influence", "RankingBounds", "compute_bounds"]
