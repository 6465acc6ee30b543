"""Grading-scale study: the worth of a judge's finer scale, and its scores (ERank 3.2)."""
