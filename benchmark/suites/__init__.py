"""Suites: one system over many collections, as in BEIR and BRIGHT."""
