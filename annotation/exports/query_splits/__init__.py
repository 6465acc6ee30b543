"""Queries with a fixed split: lists of queries that a collection holds out of training sets, and their page."""
