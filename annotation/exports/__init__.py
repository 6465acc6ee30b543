"""Exports of labels, judgments, debates and training sets, with their label sources, splits and reranker scores."""
