"""Exports: labels, judgments, debates and training sets as files that can be made again byte for byte."""
