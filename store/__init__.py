"""Files that several machines share: contents in a store behind fsspec, their names in a table, local copies in VAR."""
