"""Costs of labels: the ledger of model calls and people's time, prices, and the cost of a correct label."""
