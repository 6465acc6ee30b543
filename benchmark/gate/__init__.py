"""The gate: may a new run replace an old one? Pass, fail or cannot tell, from intervals and bounds."""
