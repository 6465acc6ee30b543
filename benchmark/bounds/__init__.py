"""Ranking bounds: how much unjudged pairs could still change the order of the systems."""
