"""Documents from a web search for a collection's queries, with address, time and hash of each (Prism 4.1)."""
