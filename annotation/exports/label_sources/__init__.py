"""Sources of an export's labels: all grades, a version of the qrels, failed routes."""
