"""The judging engine (MECHANICS M3): leases on pairs, model calls, rate limits, budget, cache, and the writer."""
