"""Campaigns: start, pause, resume, retry, progress, estimates, audit samples."""
