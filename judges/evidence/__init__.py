"""Contribution and evidence of relevant documents, written and measured by judges (Prism)."""
