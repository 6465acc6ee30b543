"""Judges that score: what a finer scale is worth, and scores with their chains as training data (ERank 3.2)."""
