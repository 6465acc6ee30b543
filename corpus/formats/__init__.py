"""Formats of files: bytes, lines and archives, and the rows of JSON, Parquet, workbooks, XML and other tools."""
