"""Settings of a collection: how it is judged, its budgets, and its versioned texts."""
