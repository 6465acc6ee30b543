"""Exports: labels, judgments and debates as files that can be made again byte for byte (DESIGN 8, MECHANICS M7)."""
