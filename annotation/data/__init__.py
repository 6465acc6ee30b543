"""A collection's data: its pairs and documents, imports, bulk actions, web search, URL fetch, settings."""
