"""Sources of an export's labels: aggregated grades, versions of the qrels, and labels of failed routes."""
