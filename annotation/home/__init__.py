"""A collection's first pages: overview, campaigns, and the models that judge."""
