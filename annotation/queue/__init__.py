"""The task queue: assigning tasks to annotators under leases, taking judgments, resolving tasks into labels."""
