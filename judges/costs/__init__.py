"""Costs of model calls: prices, budgets and call limits of campaigns and collections, and the ledger."""
