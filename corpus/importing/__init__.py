"""Imports from files: documents and queries in many formats, candidate pairs, grades and runs."""
