"""Evidence targets of pairs: the contribution of a document to a query, and its sentences that support it."""
