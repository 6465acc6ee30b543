"""Pages of systems, the retrieval methods that produced the runs, and of the benchmark's queries."""
