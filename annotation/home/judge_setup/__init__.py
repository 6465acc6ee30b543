"""The page of models: which are configured, whether each has its key and answers, and who of them sits on the panel."""
