"""Reports that compare two versions of the qrels (docs/workshop.md)."""
