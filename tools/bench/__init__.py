"""The figures of `make bench` and `make bench-gpu`, a module each."""
