"""Pages of a collection's data: pairs, documents, imports, settings, relevance guidelines."""
