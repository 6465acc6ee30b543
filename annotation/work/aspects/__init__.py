"""Aspects of a query: decomposing the query, adding passages from the web, a second person's review."""
