"""The page of a search endpoint in a collection: its runs over time, and what of the newest one has no label."""
