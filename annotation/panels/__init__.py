"""Panel selection: how candidate judges agree with gold and each other, and which of them should vote."""
