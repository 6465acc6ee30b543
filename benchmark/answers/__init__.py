"""Answers generated from the documents that systems return, and how well retrieval predicts them (DREAM 5.2, J)."""
