"""Contexts of the pages of imports: files with their columns, results of a check, progress."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.data.imports.files import RecognisedFile
from annotation.data.imports.importing import LOOKING
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
# What the importer counts, by its name in the report.
PARTS = {
    "documents": gettext_lazy("Documents"),
    "queries": gettext_lazy("Queries"),
    "pairs": gettext_lazy("Pairs"),
    "judgments": gettext_lazy("Grades"),
}
PHASES = {
    LOOKING: gettext_lazy("Reading what the files contain"),
    "documents": gettext_lazy("Reading documents"),
    "queries": gettext_lazy("Reading queries"),
    "pairs": gettext_lazy("Reading pairs"),
    "judgments": gettext_lazy("Reading grades"),
    "run lines": gettext_lazy("Reading runs"),
    "BM25 candidates": gettext_lazy("Finding BM25 candidates"),
}


def list_files(row: FileImport) -> list[dict[str, Any]]:
    """Return the files of an import with the choices of their forms. `columns`: (header, name of its input, field)."""
    files = []
    for number, stored in enumerate(row.files):
        file = RecognisedFile.of(stored)
        holds = file.holds
        choices: list[tuple[str, Any]] = [(kind, KINDS[kind]) for kind in holds.choices]
        kind = holds.kind
        if file.is_table:
            choices = [("by-columns", KINDS.get(holds.kind, _("By its columns")))]
            kind = "by-columns" if holds.kind or holds.problem else ""
        if holds.problem and not kind:
            choices.insert(0, ("", _("Choose …")))
        columns = [(name, f"field-{number}-{n}", holds.fields.get(name, "")) for n, name in enumerate(holds.header)]
        entry = {"number": number, "file": file, "kind": kind, "choices": [*choices, ("skip", _("Leave out"))]}
        # Metadata of rows that are pairs belongs to no text: the list of fields must not say that it is kept.
        unread = {name for name in holds.unused if file.is_table}
        files.append(
            {
                **entry,
                "columns": columns,
                "unused": list(holds.unused.items()),
                "unread": unread,
                "problem": holds.problem,
            }
        )
    return files


def list_choices(row: FileImport) -> dict[str, str]:
    """Return the fields of the form that describe files and columns, with the values that the page selects."""
    choices = {}
    for shown in list_files(row):
        choices[f"kind-{shown['number']}"] = shown["kind"] or ("" if shown["problem"] else "skip")
        if shown["file"].is_table:
            # Of a list without a selected entry, browsers select the first.
            choices |= {name: field or next(iter(FIELDS)) for _header, name, field in shown["columns"]}
    return choices


def find_import(collection: Collection, number: int) -> FileImport:
    """Return an import by its number. Raises Http404."""
    return numbered_or_404(FileImport.objects, collection, number, _("Import not found."))


def build_import_page(row: FileImport) -> dict[str, Any]:
    """Return the context of the page of an import, except its forms."""
    names = [RecognisedFile.of(stored).shown_name for stored in row.files]
    changes = ("new", "updated", "unchanged")
    counts = [
        (str(words), *(row.report[change][part] for change in changes)) for part, words in PARTS.items() if row.report
    ]
    counts.append((_("Runs"), row.report.get("runs", 0), 0, 0))
    return {
        "file_import": row,
        "names": names,
        "files": list_files(row),
        "fields": FIELDS,
        "counts": [row for row in counts if any(row[1:])],  # Part, new, changed, unchanged.
        "repeated": [(PARTS[part], n) for part, n in row.report.get("repeated", {}).items() if n],
        "error": row.error,
        "phase": PHASES.get(row.phase, row.phase),
        "can_correct": row.dry_run or row.state in (FileImport.FAILED, FileImport.CANCELLED),
        "unattended": row.state == FileImport.WAITING and not has_workers(),
    }
