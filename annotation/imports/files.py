"""The files of an import: what each holds, as recognised and as a person corrected it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.imports.uploads import fetch_upload
from annotation.models.imports import FileImport, Upload
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import confinement, tables
from corpus.importing.detection import HOLDS, DetectedFile, detect, find_conflicts, list_sources
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, sort_files


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
        path = fetch_upload(upload)

        def look(path: Path = path, name: str = upload.name) -> Iterator[tuple[str, str, bool, DetectedFile]]:
            for source in list_sources(path, name):
                yield str(source), source.member, source.is_part, detect(source)

        looked_into = confinement.confine(path, upload.name, look)
        for name, member, is_part, holds in looked_into:
            # Only its name and place: what it was read with is closed again.
            source = FileSource(path, name=upload.name, member=member, is_part=is_part)
            assert str(source) == name
            found.append((source, holds))
            stored.append(GivenFile(upload.pk, upload.name, member, holds))
    find_conflicts(found)
    return [asdict(one) for one in stored]


def place_corrections(
    files: list[dict[str, Any]], kinds: dict[str, str], columns: dict[str, dict[str, str]]
) -> dict[str, str]:
    """Return what is said of files by their names as the page's form says it. Raises BadInput for an unknown name."""
    said: dict[str, str] = {}
    known: set[str] = set()
    for place, file in enumerate(files):
        # A member of an archive can be named by itself, or all of them by the archive.
        names = [GivenFile.of(file).shown_name, file["name"]]
        known.update(names)
        if kind := next((kinds[one] for one in names if one in kinds), ""):
            said[f"kind-{place}"] = kind
        chosen = next((columns[one] for one in names if one in columns), {})
        header = file["holds"]["header"] or ()
        said |= {f"field-{place}-{n}": chosen[one] for n, one in enumerate(header) if one in chosen}
    if unknown := (kinds.keys() | columns.keys()) - known:
        raise BadInput(_("No file of this import is called %(names)s") % {"names": ", ".join(sorted(unknown))})
    return said


def correct_files(found: Sequence[GivenFile], said: dict[str, str], uploads: dict[int, Upload]) -> list[dict[str, Any]]:
    """Return the files as a form corrects them: `kind-N` of file N, `field-N-M` of its column M. Raises BadInput."""
    for number, file in enumerate(found):
        holds = file.holds
        kind = said.get(f"kind-{number}", holds.kind)
        if not file.is_table:
            if holds.problem and not kind:
                continue
            holds.kind = kind if kind in holds.choices else ""
        else:
            chosen = {name: said.get(f"field-{number}-{n}", holds.fields[name]) for n, name in enumerate(holds.header)}
            source = _source_of(file, uploads, chosen)
            read = partial(map, tables.read_table, [source])
            (table,) = confinement.confine(source.path, str(source), read)
            holds.fields = table.fields if table else chosen
            problem = table.problem if table else ""
            holds.kind = table.kind if table and kind != "skip" and not problem else ""
            holds.problem = problem if kind != "skip" else ""
            holds.unused = tables.unused_columns(table, HOLDS[holds.kind]) if table and holds.kind else {}
        # What nobody has chosen keeps its reason.
        if holds.kind or kind == "skip":
            holds.problem, holds.is_open = "", False
    return [asdict(one) for one in found]


def plan_files(row: FileImport) -> ImportFiles:
    """Return the import of a row's files. BadInput for a missing file, or as `sort_files`."""
    uploads = {upload.pk: upload for upload in row.uploads.select_related("collection")}
    files = [GivenFile.of(one) for one in row.files]
    for one in files:
        # In an archive there may be a licence, or a picture. A file that was chosen is imported, and data are.
        if one.holds.problem and (one.holds.is_open or not one.member):
            problem = one.holds.problem
            raise BadInput(problem if problem.startswith(one.shown_name) else f"{one.shown_name}: {problem}")
    planned = [(_source_of(one, uploads, one.holds.fields), one.holds.kind) for one in files if one.holds.kind]
    return ImportFiles(**sort_files(planned), options=ImportOptions.read(row.options), dry_run=row.dry_run)


def _source_of(file: GivenFile, uploads: dict[int, Upload], fields: dict[str, str]) -> FileSource:
    upload = uploads.get(file.upload)
    path = fetch_upload(upload) if upload is not None else None
    if path is None or not path.is_file():
        said = _("%(file)s: the file was deleted, as uploads are after a day; upload it again")
        raise BadInput(said % {"file": file.name})
    return FileSource(path, name=file.name, member=file.member, fields=fields)
