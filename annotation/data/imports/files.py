"""The files of an import: what each contains, as recognised and as a person corrected it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.data.imports.uploads import fetch_upload
from annotation.models.imports import FileImport, Upload
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import confinement, tables
from corpus.importing.detection import HOLDS, DetectedFile, compare_files, detect, list_sources
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, sort_files


@dataclass(slots=True)
class RecognisedFile:
    """A file, or a member of an uploaded archive, and what it contains."""

    upload: int
    name: str
    member: str
    holds: DetectedFile

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "RecognisedFile":
        """Return the file from the dict in which an import stores it."""
        return cls(**{**stored, "holds": DetectedFile(**stored["holds"])})

    @property
    def is_table(self) -> bool:
        """True if the file is a table, whose columns can be mapped to fields."""
        return bool(self.holds.fields)

    @property
    def shown_name(self) -> str:
        return f"{self.name}/{self.member}" if self.member else self.name


def recognise_files(uploads: Iterable[Upload]) -> list[dict[str, Any]]:
    """Return the files of uploads with their contents, as an import stores them. Raises BadInput for a bad archive."""
    detected: list[tuple[FileSource, DetectedFile]] = []
    files = []
    for upload in uploads:
        path = fetch_upload(upload)

        def look(path: Path = path, name: str = upload.name) -> Iterator[tuple[str, str, bool, DetectedFile]]:
            for source in list_sources(path, name):
                yield str(source), source.member, source.is_part, detect(source)

        for name, member, is_part, holds in confinement.confine(path, upload.name, look):
            # A source without its open file, which the confined process has closed.
            source = FileSource(path, name=upload.name, member=member, is_part=is_part)
            assert str(source) == name
            detected.append((source, holds))
            files.append(RecognisedFile(upload.pk, upload.name, member, holds))
    compare_files(detected)
    return [asdict(file) for file in files]


def place_corrections(
    files: list[dict[str, Any]], kinds: dict[str, str], columns: dict[str, dict[str, str]]
) -> dict[str, str]:
    """Return corrections by file name as the fields of the page's form. Raises BadInput for an unknown name."""
    fields: dict[str, str] = {}
    known_names: set[str] = set()
    for number, file in enumerate(files):
        # A member of an archive can be named, or the archive for all its members.
        names = [RecognisedFile.of(file).shown_name, file["name"]]
        known_names.update(names)
        if kind := next((kinds[name] for name in names if name in kinds), ""):
            fields[f"kind-{number}"] = kind
        mapping = next((columns[name] for name in names if name in columns), {})
        header = file["holds"]["header"] or ()
        fields |= {f"field-{number}-{n}": mapping[column] for n, column in enumerate(header) if column in mapping}
    if unknown := (kinds.keys() | columns.keys()) - known_names:
        raise BadInput(_("No file of this import is called %(names)s") % {"names": ", ".join(sorted(unknown))})
    return fields


def correct_files(
    files: Sequence[RecognisedFile], fields: dict[str, str], uploads: dict[int, Upload]
) -> list[dict[str, Any]]:
    """Return the files as a form corrects them: `kind-N` of file N, `field-N-M` of its column M. Raises BadInput."""
    for number, file in enumerate(files):
        holds = file.holds
        kind = fields.get(f"kind-{number}", holds.kind)
        if not file.is_table:
            if holds.problem and not kind:
                continue
            holds.kind = kind if kind in holds.choices else ""
        else:
            mapping = {
                name: fields.get(f"field-{number}-{n}", holds.fields[name]) for n, name in enumerate(holds.header)
            }
            source = _source_of(file, uploads, mapping)
            read = partial(map, tables.read_table, [source])
            (table,) = confinement.confine(source.path, str(source), read)
            holds.fields = table.fields if table else mapping
            problem = table.problem if table else ""
            holds.kind = table.kind if table and kind != "skip" and not problem else ""
            holds.problem = problem if kind != "skip" else ""
            holds.unused = tables.unused_columns(table, HOLDS[holds.kind]) if table and holds.kind else {}
        # A file whose kind nobody has chosen keeps its problem.
        if holds.kind or kind == "skip":
            holds.problem, holds.is_open = "", False
    return [asdict(file) for file in files]


def plan_files(row: FileImport) -> ImportFiles:
    """Return the plan of an import's files. Raises BadInput for a missing file, and as `sort_files` does."""
    uploads = {upload.pk: upload for upload in row.uploads.select_related("collection")}
    files = [RecognisedFile.of(stored) for stored in row.files]
    for file in files:
        # An archive may contain a licence or a picture, which are left out; a file that was uploaded by itself, or
        # that looks like data, is not.
        if file.holds.problem and (file.holds.is_open or not file.member):
            problem = file.holds.problem
            raise BadInput(problem if problem.startswith(file.shown_name) else f"{file.shown_name}: {problem}")
    planned = [(_source_of(file, uploads, file.holds.fields), file.holds.kind) for file in files if file.holds.kind]
    return ImportFiles(**sort_files(planned), options=ImportOptions.read(row.options), dry_run=row.dry_run)


def _source_of(file: RecognisedFile, uploads: dict[int, Upload], fields: dict[str, str]) -> FileSource:
    upload = uploads.get(file.upload)
    path = fetch_upload(upload) if upload is not None else None
    if path is None or not path.is_file():
        message = _("%(file)s: the file was deleted, as uploads are after a day; upload it again")
        raise BadInput(message % {"file": file.name})
    return FileSource(path, name=file.name, member=file.member, fields=fields)
