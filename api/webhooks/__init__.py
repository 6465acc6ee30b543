"""Webhooks: signed requests that tell an address of events in a collection (docs/webhooks.md, docs/adr/0092)."""
