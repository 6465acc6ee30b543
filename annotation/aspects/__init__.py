"""Aspects of a query (SPEC S7): decomposing it, adding passages from the web, and the second annotator's review."""
