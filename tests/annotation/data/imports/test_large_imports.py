"""The importer's memory does not grow with its files (issue 17, check 3): a job of its own process, from check to end.

QUORUM_IMPORT_TEST_DOCUMENTS says how many documents there are: 10000000 is what the issue asks for.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from annotation.data.imports import importing, uploads
from annotation.models import Role
from annotation.models.imports import FileImport
from config.env import ROOT
from corpus.models import Collection
from tests.factories import make_collection, make_member

pytestmark = [pytest.mark.weekly, pytest.mark.django_db(transaction=True)]
DOCUMENTS = int(os.environ.get("QUORUM_IMPORT_TEST_DOCUMENTS", "300000"))
SMALL = 20_000
PAIRS = 10  # Documents for each pair.
QUERIES = 1_000
MOST_MB = 1_000
GROWTH_MB = 60
WORK = """
import json, time
import django
django.setup()
from annotation.data.imports.importing import perform_import
from annotation.models.imports import FileImport
from jobs import leases
from tests.memory import peak_megabytes
told = {}
for what in ("check_s", "import_s"):
    begin = time.perf_counter()
    job = leases.claim(FileImport)
    perform_import(job)
    told[what] = round(time.perf_counter() - begin, 1)
    row = FileImport.objects.get(pk=job.pk)
    if what == "check_s" and row.is_checked:
        FileImport.objects.filter(pk=row.pk).update(state=FileImport.WAITING, dry_run=False, done=0)
told["peak_mb"] = peak_megabytes()
print(json.dumps({**told, "state": row.state, "error": row.error, "new": row.report.get("new"), "done": row.done}))
"""


def lines(kind: str, documents: int) -> Iterator[str]:
    if kind == "corpus":
        yield from (
            f'{{"_id": "d{n}", "title": "", "text": "Short text {n} of a large file."}}\n' for n in range(documents)
        )
    elif kind == "queries":
        yield from (f'{{"_id": "q{n}", "text": "Which text has the number {n}?"}}\n' for n in range(QUERIES))
    else:
        yield from (f'{{"query_id": "q{n % QUERIES}", "doc_id": "d{n}"}}\n' for n in range(documents // PAIRS))


def bring(collection: Collection, documents: int) -> FileImport:
    """An import of uploads that came whole, whose check waits."""
    owner = make_member(collection, f"alice-{documents}", Role.ADMIN).user
    came = []
    for kind in ("corpus", "queries", "pairs"):
        size = sum(map(len, lines(kind, documents)))
        upload = uploads.begin_upload(collection, owner, f"{kind}.jsonl", size)
        with uploads.path_of(upload).open("w") as out:
            out.writelines(lines(kind, documents))
        came.append(upload)
    return importing.begin_import(collection, owner, came)


def import_apart(environment: dict[str, str], documents: int) -> dict[str, Any]:
    """Check and import in a process of its own; what it says of time and memory."""
    bring(make_collection(f"birds-{documents}"), documents)
    done = subprocess.run(
        [sys.executable, "-c", WORK],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=7200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (found["state"], found["error"]) == ("ready", ""), found
    assert found["new"] == {"documents": documents, "queries": QUERIES, "pairs": documents // PAIRS, "judgments": 0}
    assert found["done"] == documents + QUERIES + documents // PAIRS
    return found


def test_an_import_of_many_documents_holds_no_more_than_one_of_few(instance):
    few = import_apart(instance, SMALL)
    many = import_apart(instance, DOCUMENTS)
    print(f"{SMALL:,} documents: {few}; {DOCUMENTS:,} documents: {many}")
    assert many["peak_mb"] < min(MOST_MB, few["peak_mb"] + GROWTH_MB)
