"""Learning curves: a training on growing subsets of one set; what the last labels bought."""
