"""Costs of labels: the ledger of calls and people's time, prices, cost per correct label."""
