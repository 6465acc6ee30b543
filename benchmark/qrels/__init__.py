"""Versions of a collection's qrels: the original, filled ones beside it, imported files, all labels."""
