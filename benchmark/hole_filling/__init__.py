"""Hole filling: unjudged pairs of a pool are judged by a policy and people, as new qrels."""
