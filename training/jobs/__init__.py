"""Training jobs on the GPU queue: start, progress, cancel, resume, and their models."""
