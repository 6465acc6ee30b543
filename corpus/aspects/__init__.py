"""Aspects of a query (BRIGHT-Pro 3.2, 3.3): the set, its changes and history, import and export."""
