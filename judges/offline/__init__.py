"""Offline judges: deterministic lexical relevance assessors that need neither a model nor a key."""
