"""Ranking bounds: how much the pairs that nobody judged could still change the order of the systems."""
