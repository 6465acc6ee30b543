"""Panel selection: the agreement of candidates with gold and with each other, and which of them should vote."""
