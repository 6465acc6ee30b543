"""Routing policies compared by replaying stored turns and votes: accuracy, escalation and cost without a new call."""
