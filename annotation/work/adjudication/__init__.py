"""Adjudication: a conflict between annotators is decided by an adjudicator, who sees their judgments and reasons."""
