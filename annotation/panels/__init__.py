"""Panel selection (SPEC S4): how candidate judges agree with gold and each other, and which of them should vote."""
