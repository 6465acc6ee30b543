"""Files that several machines share: a store of contents behind fsspec, a table of names, VAR as the local copy."""
