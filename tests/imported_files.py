"""Files brought to the import page or command, and its jobs done as a worker does them."""

import json
from io import StringIO
from typing import Any
from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from annotation.data.imports.importing import perform_import
from annotation.models.imports import FileImport
from jobs import leases


def import_files(name: str, *arguments: object) -> tuple[dict[str, Any], str]:
    """Import by the command: its report, none where it refuses the files, and what it says beside it."""
    out, err = StringIO(), StringIO()
    try:
        call_command("import_collection", name, *map(str, arguments), "--json", stdout=out, stderr=err)
    except SystemExit as end:
        assert (end.code, out.getvalue()) == (2, "")
        return {}, err.getvalue()
    return json.loads(out.getvalue()), err.getvalue()


def work_off() -> None:
    # A test's rows are not committed, so the thread that renews a lease would find none and take it for lost.
    with mock.patch.object(leases, "PROGRESS_S", 600):
        while (job := leases.claim(FileImport)) is not None:
            perform_import(job)


def bring(client: Client, collection: str, files: dict[str, str | bytes]) -> FileImport:
    """Send files with the form and have them checked; the import."""
    sent = [
        SimpleUploadedFile(name, text if isinstance(text, bytes) else text.encode()) for name, text in files.items()
    ]
    response = client.post(f"/c/{collection}/import/", {"files": sent})
    assert response.status_code == 302, response.content.decode()
    work_off()
    number = response["Location"].rstrip("/").rpartition("/")[2]
    return FileImport.objects.get(collection__name=collection, number=number)


def correct(client: Client, row: FileImport, said: dict[str, str]) -> None:
    """Say what an import's files are, as its page's form does, and have them checked again."""
    client.post(f"/c/{row.collection.name}/import/{row.number}/", said)
    work_off()
    row.refresh_from_db()


def start(client: Client, row: FileImport) -> FileImport:
    client.post(f"/c/{row.collection.name}/import/{row.number}/start/")
    work_off()
    row.refresh_from_db()
    return row
