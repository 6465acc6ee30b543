"""Exports: labels, judgments, debates, training sets as files, the same byte for byte."""
