"""Choosing and trusting a panel (SPEC S4): which candidates shall vote, and can a judge be trusted at all."""
