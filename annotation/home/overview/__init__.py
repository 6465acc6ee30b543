"""The collection's dashboard: what needs a decision, progress, label quality and costs."""
