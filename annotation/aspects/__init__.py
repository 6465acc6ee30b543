"""Aspects of a query: decomposing it, adding passages from the web, and the second annotator's review."""
