"""Training sets: which pairs they hold, how they are split, and the files of each format."""
