"""Learning curves: trainings on growing subsets of one set show what the last labels gained."""
