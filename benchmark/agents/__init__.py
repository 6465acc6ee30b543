"""Agents that search: what retrievers are worth to them, and the reference answers that they are measured by."""
