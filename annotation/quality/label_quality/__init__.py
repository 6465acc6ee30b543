"""Label quality: audits with intervals, canaries, and routes too often wrong."""
