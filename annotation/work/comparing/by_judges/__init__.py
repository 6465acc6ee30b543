"""Comparisons by model judges: each is asked about both orders of the two documents."""
