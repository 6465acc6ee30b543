"""Figures that `make bench` prints."""
