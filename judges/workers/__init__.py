"""Processes that judge: the pool of workers, one worker with its loops, and calls made at once without workers."""
