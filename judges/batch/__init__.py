"""Batch endpoints as a way to run a campaign: half the price, hours."""
