"""Judges and panels: the judges file, who debates and who votes, versions of each judge."""
