"""What labels cost: the ledger with people, and cost per correct label (issue 4, Money)."""
