"""Pages of a collection's data: pairs, documents, imports, settings and the relevance guidelines."""
