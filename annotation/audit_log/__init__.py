"""The audit log: who did what and when, as an append-only list that admins can filter and export."""
