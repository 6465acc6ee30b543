"""Systems: what produced a run, their descriptions and the benchmark's overview page."""
