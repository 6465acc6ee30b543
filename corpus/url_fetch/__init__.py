"""Fetching web pages that people name as sources, only from public addresses (docs/adr/0029)."""
