"""Reports that compare two versions of the qrels: measures, significance, shifts, curves (docs/workshop.md)."""
