"""Batch endpoints of providers as a way to run a campaign: half the price, hours instead of seconds."""
