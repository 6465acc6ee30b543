"""Evidence targets of pairs: the sentences that make a document relevant, from judges and people."""
