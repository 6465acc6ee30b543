"""Panel selection: how candidates agree with gold and each other, and who should vote."""
