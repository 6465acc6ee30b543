"""Documents from a web search for queries, with address, time and hash (Prism 4.1)."""
