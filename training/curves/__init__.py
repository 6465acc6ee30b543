"""Learning curves: the same training on growing subsets of one set, and what the last labels bought."""
