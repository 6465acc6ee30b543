"""Trainers: the training loop, losses, checkpoints, evaluation. PyTorch is imported here and in `published`."""
