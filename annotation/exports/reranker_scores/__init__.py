"""Reranker scores as training targets: each pair is scored once by a rerank API, and every answer is stored."""
