"""Conversations with judges about a query: calls in several steps, each of which depends on earlier answers."""
