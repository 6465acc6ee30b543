"""Queries with a fixed split: lists that a collection keeps out of training, and their page."""
