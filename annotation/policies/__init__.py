"""Policies compared by a replay of what is stored: nothing is asked again (SPEC S3)."""
