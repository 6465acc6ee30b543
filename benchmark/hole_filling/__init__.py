"""Hole filling: a policy and people judge the unjudged pairs of a pool, which makes new qrels."""
