"""Costs of calls: prices, budgets and limits of campaigns and collections, ledger."""
