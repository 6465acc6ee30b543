"""The page of models: which are configured, whether each has its key and answers, and which sit on the panel."""
