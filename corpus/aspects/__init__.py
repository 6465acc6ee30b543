"""Aspects of a query (BRIGHT-Pro 3.2, 3.3): the set and its acts, their history, files in and out."""
