"""Judges and panels: the judges file, who debates and who votes, and the versions of each judge."""
