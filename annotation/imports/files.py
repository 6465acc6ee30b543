"""The files of an import: what each of them holds, as it was recognised and as a person corrected it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.imports.uploads import fetch_upload
from annotation.models.imports import FileImport, Upload
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import tables
from corpus.importing.detection import HOLDS, DetectedFile, detect, keep_one_each, list_sources
from corpus.importing.service import ImportFiles, plan_import


@dataclass(slots=True)
class GivenFile:
    """A file, or a member of an uploaded archive, and what it holds."""

    upload: int
    name: str
    member: str
    holds: DetectedFile

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "GivenFile":
        """Return the file from the form in which an import stores it."""
        return cls(**{**stored, "holds": DetectedFile(**stored["holds"])})

    @property
    def is_table(self) -> bool:
        """True if the file is a table, whose columns can be mapped to fields."""
        return bool(self.holds.fields)

    @property
    def shown_name(self) -> str:
        return f"{self.name}/{self.member}" if self.member else self.name


def recognise_files(uploads: Iterable[Upload]) -> list[dict[str, Any]]:
    """Return the files of uploads with what they hold, as an import stores them. Raises BadInput for a bad archive."""
    found: list[tuple[FileSource, DetectedFile]] = []
    stored = []
    for upload in uploads:
        for source in list_sources(fetch_upload(upload), upload.name):
            holds = detect(source)
            found.append((source, holds))
            stored.append(GivenFile(upload.pk, upload.name, source.member, holds))
    keep_one_each(found)
    return [asdict(one) for one in stored]


def correct_files(found: Sequence[GivenFile], said: dict[str, str], uploads: dict[int, Upload]) -> list[dict[str, Any]]:
    """Return the files as a person's form corrects them. Raises BadInput for columns that do not go together.

    `said`: `kind-N` of file N, `field-N-M` of its column M, as the form names them.
    """
    for number, file in enumerate(found):
        holds = file.holds
        kind = said.get(f"kind-{number}", holds.kind)
        if not file.is_table:
            holds.kind = kind if kind in holds.choices else ""
        else:
            chosen = {name: said.get(f"field-{number}-{n}", holds.fields[name]) for n, name in enumerate(holds.header)}
            table = tables.read_table(_source_of(file, uploads, chosen))
            holds.fields = table.fields if table else chosen
            problem = table.problem if table else ""
            holds.kind = table.kind if table and kind != "skip" and not problem else ""
            holds.problem = problem if kind != "skip" else ""
            holds.unused = tables.unused_columns(table, HOLDS[holds.kind]) if table and holds.kind else {}
        if holds.kind or kind in ("", "skip"):
            holds.problem = ""
    return [asdict(one) for one in found]


def plan_files(row: FileImport) -> ImportFiles:
    """Return the import of a row's files. Raises BadInput where a file is gone, and as `plan_import` does."""
    uploads = {upload.pk: upload for upload in row.uploads.select_related("collection")}
    files = [GivenFile.of(one) for one in row.files]
    planned = [(_source_of(one, uploads, one.holds.fields), one.holds.kind) for one in files if one.holds.kind]
    return plan_import(planned, dry_run=row.dry_run, **row.options)


def _source_of(file: GivenFile, uploads: dict[int, Upload], fields: dict[str, str]) -> FileSource:
    upload = uploads.get(file.upload)
    path = fetch_upload(upload) if upload is not None else None
    if path is None or not path.is_file():
        said = _("%(file)s: the file was deleted, as uploads are after a day; upload it again")
        raise BadInput(said % {"file": file.name})
    return FileSource(path, name=file.name, member=file.member, fields=fields)
