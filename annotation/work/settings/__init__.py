"""Settings of a collection, and its texts in versions: instruction and guidelines."""
