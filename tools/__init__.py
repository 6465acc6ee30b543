"""Measurements: `make bench`, and `make bench-gpu` on a machine with a GPU."""
