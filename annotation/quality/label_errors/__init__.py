"""Suspected label errors: labels that votes, assessors, near-duplicates or a model contradict."""
