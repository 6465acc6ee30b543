"""Training sets: the choice of pairs, the split of queries, and the files of each format."""
