"""Costs of model calls: prices, budgets of campaigns and collections, and the ledger."""
