"""Training jobs on the GPU queue: start, progress, cancel, resume, and the models that come of them."""
