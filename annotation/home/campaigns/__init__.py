"""Pages of campaigns: the start with its estimate, progress, what is paused and why."""
