"""Pushing exports and models to the Hugging Face Hub, or to a server that speaks its protocol (docs/exports.md)."""
