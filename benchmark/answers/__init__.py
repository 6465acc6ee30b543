"""Answers from what systems return, and how well retrieval predicts whether they are right (DREAM 5.2, J)."""
