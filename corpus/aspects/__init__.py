"""Aspects of a query (BRIGHT-Pro 3.2, 3.3): set, acts, history, files in and out."""
