"""Models that were measured on the same held-out dev queries, side by side."""
