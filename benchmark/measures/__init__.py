"""Retrieval measures: nDCG, recall, alpha-nDCG, aspect recall and others, by ir_measures."""
