"""The judging engine (MECHANICS M3): claims, calls, limits, budget, cache, and the one writer of a worker process."""
