"""What the benchmark's pages show, read from rows and stored reports: at most twenty statements, no writing."""
