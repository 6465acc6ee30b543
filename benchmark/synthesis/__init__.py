"""Synthetic training data: documents drawn for each query and scored several times by a graded judge (ERank 3.2)."""
