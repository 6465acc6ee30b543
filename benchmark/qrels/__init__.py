"""Versions of a collection's qrels: the original, filled ones, imported files, all labels."""
