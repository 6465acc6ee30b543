"""Label quality: audits of automatic labels with intervals, canaries, and which routes are too often wrong."""
