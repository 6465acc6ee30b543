"""What two versions of the qrels say of a set of runs: measures, significance, shifts, curves (docs/holes.md)."""
