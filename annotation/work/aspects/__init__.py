"""Aspects of a query: decomposing it, passages from the web, the second person's review."""
