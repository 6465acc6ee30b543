"""Batch endpoints as a way to execute a campaign: half the price, hours instead of seconds (issue 4, MECHANICS M3).

A campaign with the protocol's `batch` asks nothing as it goes along. One process at a time walks over its pairs, each
as far as its stored evidence takes it, and collects what they need next: a round of the debate and the votes. That
becomes a batch for each model, which is polled until its answers are there; then the walk begins anew. All of it
stands in two tables, so whoever comes after a kill goes on from them.
"""
