"""Pushing exports and published models to a hub: the action, its worker, its pages, and a stored token."""
