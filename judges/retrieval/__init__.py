"""Models in retrieval: query expansion, reranking, embeddings, web search, and synthesis of scores."""
