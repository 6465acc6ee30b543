"""Exports of labels, judgments, debates and training sets; label sources, splits, reranker scores."""
