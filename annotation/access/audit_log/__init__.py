"""The audit log: who did what and when, an append-only list that admins can filter and export."""
