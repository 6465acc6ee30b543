"""Recipes that learn from scores: a reranker that teaches itself to write (P 3.2), losses side by side (P appendix B)."""
