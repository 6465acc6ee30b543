"""The judging engine: leases on pairs, model calls, rate limits, budget, cache, and the writer of results."""
