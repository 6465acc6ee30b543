"""Recipes that learn from scores: a reranker teaches itself to write, and four losses compared (Prism 3.2 and B)."""
