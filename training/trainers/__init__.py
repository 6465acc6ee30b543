"""Trainers: the training loop, losses, checkpoints and evaluation. PyTorch is imported here only."""
