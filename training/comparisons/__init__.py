"""Comparisons of trained models that were measured on the same held-out dev queries."""
