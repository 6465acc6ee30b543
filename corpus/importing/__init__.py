"""Files in, rows out: collections in BEIR and TREC formats, candidates and grades."""
