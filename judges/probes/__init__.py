"""Probes of judges: self-checks against a known order, canaries, and remedies for the quirks of an API."""
