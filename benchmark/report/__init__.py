"""Two versions of the qrels compared: measures, significance, shifts, curves (docs/hole-filling.md)."""
