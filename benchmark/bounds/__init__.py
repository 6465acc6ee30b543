"""How safe is today's ranking of the systems: what the pairs that nobody judged could still change."""

from benchmark.bounds.order import Influence, Safety, System, assess

__all__ = ["Influence", "Safety", "System", "assess"]
