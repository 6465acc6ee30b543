"""Evidence targets of pairs: sentences that make a document relevant."""
