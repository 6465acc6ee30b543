"""Campaigns of judges: start, pause, resume, retry, progress, cost estimates and the sampling of audits."""
