"""Lineage: where a label went, and what a model was made of."""
