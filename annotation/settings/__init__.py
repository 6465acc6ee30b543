"""Settings of a collection: how it is judged, what it may cost, and its texts in versions."""
