"""The REST API: access tokens, and one router for each thing that programs work with (docs/api.md, docs/adr/0091)."""
