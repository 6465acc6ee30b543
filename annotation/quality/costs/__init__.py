"""Costs of labels: the ledger of calls, people's time, prices, and the cost per correct label."""
