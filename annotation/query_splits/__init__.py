"""Queries whose split is fixed: lists that a collection keeps out of training sets, and their page."""
