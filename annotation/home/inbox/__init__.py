"""The inbox of a collection: what needs a decision and what has ended, live on every page of its admins."""
