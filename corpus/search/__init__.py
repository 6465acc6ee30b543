"""Text search in a collection: tokenizing, BM25, near-duplicates, and lengths of documents."""
