"""Calls in several steps about a query: each step depends on what earlier ones answered; paid for like every call."""
