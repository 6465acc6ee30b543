"""Exports for search tools, in which each grade is a rating on the tool's own scale."""
