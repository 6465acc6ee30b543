"""Offline judges: deterministic lexical relevance assessors that need no model and no key."""
