"""The task queue: assigning under leases, taking judgments, resolving into labels."""
