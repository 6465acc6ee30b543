"""Recipes that learn from scores: a reranker teaches itself to write (P 3.2); four losses compared (P app. B)."""
