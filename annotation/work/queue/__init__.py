"""The task queue: assigning items under leases, storing judgments, resolving them into labels."""
