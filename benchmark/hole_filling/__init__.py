"""Hole filling: pooled pairs without a judgment are judged by a policy and by people, as new qrels."""
