"""A file of selected pairs: the columns of the table, with the whole text of each query."""

import json
from collections.abc import Iterator

from annotation.data.pairs import load_rows
from charts.cells import csv_line
from corpus.models import Collection, Pair

NAMES = ("query_id", "doc_id", "query", "title", "state", "reason", "grade", "origin", "reference", "priority")
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson; charset=utf-8"}
CHUNK = 1_000


def write_lines(collection: Collection, pairs: list[int], form: str) -> Iterator[str]:
    """Yield the lines of a CSV file with a header, or of JSON lines, without deleted pairs."""
    if form == "csv":
        yield csv_line(NAMES)
    for begin in range(0, len(pairs), CHUNK):
        texts = Pair.objects.filter(pk__in=pairs[begin : begin + CHUNK])
        full_texts = {pk: texts for pk, *texts in texts.values_list("pk", "query__text", "document__title")}
        for row in load_rows([pk for pk in pairs[begin : begin + CHUNK] if pk in full_texts], collection, None):
            ids = (row["query__external_id"], row["document__external_id"])
            label = (row["state"], row["reason"], row["grade"], row["origin"], row["gold"], row["priority"])
            values = (*ids, *full_texts[row["pk"]], *label)
            if form == "csv":
                yield csv_line(["" if value is None else value for value in values])
            else:
                yield json.dumps(dict(zip(NAMES, values, strict=True)), ensure_ascii=False) + "\n"
