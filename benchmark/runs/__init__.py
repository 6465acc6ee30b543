"""Runs of systems: uploading them, and run builders (BM25, dense, hybrid, reranked, fused)."""
