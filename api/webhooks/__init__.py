"""Webhooks: signed requests that tell an address of events in a collection (docs/developers.md, docs/adr/0091)."""
