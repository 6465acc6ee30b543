"""Requests to addresses that people give, public ones or allowed ones alone, and pages as texts (docs/adr/0029)."""
