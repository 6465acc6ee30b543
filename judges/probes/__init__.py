"""Probes of judges: self-checks in known order, position and stance bias, canaries, remedies for an API's quirks."""
