"""File formats: bytes, lines and archives, and the rows of JSON, Parquet, workbooks, XML and exports of other tools."""
