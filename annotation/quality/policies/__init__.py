"""Comparison of routing policies by replaying stored turns and votes: accuracy, escalation and cost."""
