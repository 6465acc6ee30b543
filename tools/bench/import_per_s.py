"""import_per_s: pairs per second from JSON Lines to committed rows, also as a ratio to plain COPY.

The files have 100,000 documents of 130 words, 1,000 queries and 100,000 pairs. Plain COPY loads the bytes of the same
files into a table of one column without an index, and commits. Both are repeated in turn, and the best of each counts.
"""

import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from corpus.collections.removal import delete_collection
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection

DOCUMENTS = 100_000
QUERIES = 1_000
WORDS = 130
ROUNDS = 5
NAME = "bench-import"


def measure() -> list[dict[str, Any]]:
    """Return the pairs per second and the ratio, with the calibration of the same run."""
    with tempfile.TemporaryDirectory() as folder:
        files = generate(Path(folder))
        paths = list(files.values())
        size = sum(path.stat().st_size for path in paths)
        imports, copies = [], []
        for _ in range(ROUNDS):
            copies.append(plain_copy(paths))
            imports.append(timed_import(files))
        # Importing the same files again must not change anything.
        unchanged = not import_collection(NAME, ImportFiles(**files))["changed"]
        delete_collection(Collection.objects.get(name=NAME))
        calibration = {
            "json_mb_per_s": json_speed(files["corpus"]),
            "plain_copy_mb_per_s": round(size / 1e6 / min(copies)),
        }
    shape = f"{DOCUMENTS:,} pairs = {DOCUMENTS:,} documents of {WORDS} words, {QUERIES:,} queries"
    return [
        {
            "name": "import_per_s",
            "case": shape,
            "value": round(DOCUMENTS / min(imports)),
            "unit": "pairs/s",
            "aim": "35,000 and up",
            "idempotent": unchanged,
            "calibration": calibration,
        },
        {
            "name": "import_per_s",
            "case": "ratio to plain COPY of the same bytes",
            "value": round(min(copies) / min(imports), 3),
            "unit": "",
            "aim": "printed",
            "calibration": calibration,
        },
    ]


def generate(folder: Path) -> dict[str, Any]:
    """Write the three files, which are always the same."""
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(20_000)]
    files = {part: folder / f"{part}.jsonl" for part in ("corpus", "queries", "pairs")}
    with files["corpus"].open("w") as out:
        for n in range(DOCUMENTS):
            text = " ".join(rng.choices(vocabulary, k=WORDS))
            out.write(json.dumps({"_id": f"d{n}", "title": f"Document {n}", "text": text}) + "\n")
    with files["queries"].open("w") as out:
        for n in range(QUERIES):
            out.write(json.dumps({"_id": f"q{n}", "text": " ".join(rng.choices(vocabulary, k=8))}) + "\n")
    with files["pairs"].open("w") as out:
        for n in range(DOCUMENTS):
            out.write(json.dumps({"query_id": f"q{n % QUERIES}", "doc_id": f"d{n}"}) + "\n")
    return files


def timed_import(files: dict[str, Any]) -> float:
    """Return the seconds of an import into a new collection."""
    for old in Collection.objects.filter(name=NAME):
        delete_collection(old)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM corpus_document, corpus_pair")
    started = time.perf_counter()
    import_collection(NAME, ImportFiles(**files))
    return time.perf_counter() - started


def plain_copy(paths: list[Path]) -> float:
    """Return the seconds of a COPY of the files' lines into a table of one column, with its commit."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_plain_copy (line text)")
        try:
            started = time.perf_counter()
            with transaction.atomic(), cursor.copy("COPY bench_plain_copy FROM STDIN") as stream:
                for path in paths:
                    with path.open("rb") as file:
                        while part := file.read(1 << 18):
                            stream.write(part.replace(b"\\", b"\\\\"))
            return time.perf_counter() - started
        finally:
            cursor.execute("DROP TABLE bench_plain_copy")


def json_speed(path: Path) -> int:
    """Return the MB/s at which the standard library parses the corpus."""
    started = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return round(path.stat().st_size / 1e6 / (time.perf_counter() - started))
