"""Query logs: what people asked a search engine and how often, and queries drawn from it for a collection."""
