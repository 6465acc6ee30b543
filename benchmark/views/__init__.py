"""Pages of the benchmark."""
