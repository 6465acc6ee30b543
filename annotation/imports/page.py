"""Data of the pages of imports: files with their columns, the result of a check, the progress of an import."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.imports.files import GivenFile
from annotation.imports.importing import LOOKING
from annotation.models.imports import FileImport
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from jobs.workers import has_workers

SHOWN = 20  # Imports on the page.
KINDS = {
    "documents": gettext_lazy("Documents"),
    "queries": gettext_lazy("Queries"),
    "pairs": gettext_lazy("Pairs to judge"),
    "qrels": gettext_lazy("Grades (qrels)"),
    "judgments": gettext_lazy("Judgments with their assessors"),
    "runs": gettext_lazy("Ranking (run)"),
    "all": gettext_lazy("Queries, documents and pairs"),
    "queries-pairs": gettext_lazy("Queries and pairs"),
    "documents-pairs": gettext_lazy("Documents and pairs"),
}
FIELDS = {
    "query_id": gettext_lazy("Query id"),
    "query": gettext_lazy("Query text"),
    "answers": gettext_lazy("Answers"),
    "instruction": gettext_lazy("Instruction of the query"),
    "doc_id": gettext_lazy("Document id"),
    "title": gettext_lazy("Document title"),
    "text": gettext_lazy("Document text"),
    "positive": gettext_lazy("Relevant document, text"),
    "negative": gettext_lazy("Other document, text"),
    "passages": gettext_lazy("Documents, a list"),
    "positive_id": gettext_lazy("Relevant document, id"),
    "negative_id": gettext_lazy("Other document, id"),
    "grade": gettext_lazy("Grade"),
    "score": gettext_lazy("Teacher score"),
    "positive_score": gettext_lazy("Relevant document, teacher score"),
    "negative_score": gettext_lazy("Other document, teacher score"),
    "rank": gettext_lazy("Rank"),
    "assessor": gettext_lazy("Assessor"),
    "assumed": gettext_lazy("Not judged (yes or no)"),
    "metadata": gettext_lazy("Metadata (kept)"),
    "ignore": gettext_lazy("Ignore"),
}
# What the importer counts, and how its report calls it.
PARTS = {
    "documents": gettext_lazy("Documents"),
    "queries": gettext_lazy("Queries"),
    "pairs": gettext_lazy("Pairs"),
    "judgments": gettext_lazy("Grades"),
}
PHASES = {
    LOOKING: gettext_lazy("Finding out what the files hold"),
    "documents": gettext_lazy("Reading documents"),
    "queries": gettext_lazy("Reading queries"),
    "pairs": gettext_lazy("Reading pairs"),
    "judgments": gettext_lazy("Reading grades"),
    "run lines": gettext_lazy("Reading runs"),
    "BM25 candidates": gettext_lazy("Finding BM25 candidates"),
}


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file on the page, with the choices for it. `columns`: (header, name of its input, field).

    `unused`: the columns that are not read, each with the reason. `problem`: why it is left out.
    """

    number: int
    file: GivenFile
    kind: str
    choices: list[tuple[str, Any]]
    columns: list[tuple[str, str, str]]
    unused: list[tuple[str, str]]
    problem: str


def list_files(row: FileImport) -> list[ShownFile]:
    """Return the files of an import in their order."""
    found = []
    for number, stored in enumerate(row.files):
        file = GivenFile.of(stored)
        holds = file.holds
        if file.is_table:
            choices = [("by-columns", KINDS.get(holds.kind, _("By its columns")))]
        else:
            choices = [(kind, KINDS[kind]) for kind in holds.choices]
        columns = [(name, f"field-{number}-{n}", holds.fields.get(name, "")) for n, name in enumerate(holds.header)]
        kind = "by-columns" if file.is_table and (holds.kind or holds.problem) else holds.kind
        unused, problem = list(holds.unused.items()), holds.problem
        if problem and not kind:
            choices = [("", _("Choose …")), *choices]
        found.append(ShownFile(number, file, kind, [*choices, ("skip", _("Leave out"))], columns, unused, problem))
    return found


def list_counts(row: FileImport) -> list[tuple[str, int, int, int]]:
    """Return the counts of a check or an import: (part, new, changed, unchanged)."""
    report = row.report
    if not report:
        return []
    counts = [
        (str(words), report["new"][part], report["updated"][part], report["unchanged"][part])
        for part, words in PARTS.items()
    ]
    return [one for one in counts if any(one[1:])]


def recent_imports(collection: Collection) -> QuerySet[FileImport]:
    """Return the newest imports of a collection."""
    return FileImport.objects.filter(collection=collection).order_by("-pk")[:SHOWN]


def find_import(collection: Collection, number: int) -> FileImport:
    """Return an import by its number. Raises Http404."""
    return numbered_or_404(FileImport.objects, collection, number, _("Import not found."))


def build_import_page(row: FileImport) -> dict[str, Any]:
    """Return the context of the page of an import, except its forms."""
    names = [GivenFile.of(one).shown_name for one in row.files]
    return {
        "file_import": row,
        "names": names,
        "files": list_files(row),
        "fields": FIELDS,
        "counts": list_counts(row),
        "repeated": [(PARTS[part], n) for part, n in row.report.get("repeated", {}).items() if n],
        "error": row.error,
        "phase": PHASES.get(row.phase, row.phase),
        "can_correct": row.dry_run or row.state in (FileImport.FAILED, FileImport.CANCELLED),
        "unattended": row.state == FileImport.WAITING and not has_workers(),
    }
