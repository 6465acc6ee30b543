"""Webhooks: signed requests to an address about events in a collection (docs/developers.md, docs/adr/0091)."""
