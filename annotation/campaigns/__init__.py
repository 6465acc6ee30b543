"""Pages of judging campaigns: starting one with its cost estimate, progress, and what is paused and why."""
