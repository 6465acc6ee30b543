"""Models in retrieval: expansion, reranking, embeddings; paid as every call."""
