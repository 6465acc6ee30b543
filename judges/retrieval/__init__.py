"""Models used in retrieval: query expansion, reranking scores, embeddings; paid for like every model call."""
