"""Answers to what annotators write about pairs: comments and flags, what became of them, and who has read it."""
