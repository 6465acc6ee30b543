"""Reranker scores as training targets: asked of a rerank API once, every answer kept."""
