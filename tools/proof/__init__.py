"""`make proof`: Quorum used as a person would use it, on real text with real small models, and the page about it."""
