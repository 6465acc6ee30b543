"""The REST API: access tokens, and a router for each thing that programs use (docs/developers.md)."""
