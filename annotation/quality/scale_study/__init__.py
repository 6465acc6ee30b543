"""Grading-scale study: scores of judges on finer and coarser scales (ERank 3.2)."""
