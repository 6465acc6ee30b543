"""Answers from what systems return, and how retrieval predicts them (DREAM 5.2, J)."""
