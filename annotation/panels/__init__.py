"""Choosing and trusting a panel (SPEC S4): which five candidates shall vote, and can a judge be trusted at all."""
