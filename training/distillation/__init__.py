"""Distillation of scores: extending a reranker with text, and comparing four losses (Prism 3.2 and appendix B)."""
