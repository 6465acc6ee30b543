"""Grading-scale study: what a finer scale of judges is worth, and scores as training data (ERank 3.2)."""
