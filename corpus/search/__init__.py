"""Text search in a collection: tokenizing, BM25, and how long documents are."""
