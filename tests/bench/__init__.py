"""Figures that `make bench` prints (CONTRACT)."""
