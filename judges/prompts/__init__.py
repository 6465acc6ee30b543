"""Prompts of judges: versioned files, rendered with untrusted text fenced as data (DREAM 3.1, A.1)."""
