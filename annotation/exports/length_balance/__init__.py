"""Balanced training sets, in which the length of a text says little about its score (Prism 3.4)."""
