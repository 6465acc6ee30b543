"""`import_collection NAME --corpus F --queries F ...`: a collection's files."""

from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from corpus.commands import QuorumCommand
from corpus.document_limit import SHOWN
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import tables
from corpus.importing.columns import COLUMN_HELP, parse_columns
from corpus.importing.detection import detect, find_conflicts, list_sources
from corpus.importing.ir_datasets_cache import write_files
from corpus.importing.options import ImportOptions
from corpus.importing.service import PARTS, ImportFiles, import_collection, sort_files
from corpus.importing.staging import ProgressLine


class Command(QuorumCommand):
    """The command that imports a collection; importing the same files again changes nothing."""

    act = "import.files"
    help = "Import a collection from CSV, TSV, Excel, Parquet, JSON or TREC files, also gzip, zip archives and folders."

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("name", help="lower-case letters, digits, - and _")
        files = "files of any kind, or a zip, workbook or folder of them, told by their content"
        add("files", type=Path, nargs="*", metavar="F", help=files)
        left_out = "leave out the files of a folder, archive or workbook with this name (test.jsonl, or test*)"
        add("--leave-out", action="append", default=[], metavar="NAME", help=left_out)
        add("--ir-datasets", metavar="NAME", help="a collection of ir_datasets whose files are on this disk")
        again: dict[str, Any] = {"type": Path, "action": "append", "default": [], "metavar": "F"}
        several: dict[str, Any] = {"type": Path, "nargs": "+", "default": [], "metavar": "F"}
        add("--corpus", **again, help="file of documents; may be given several times, as may the next ones")
        add("--queries", **again, help="file of queries, with or without answers")
        add("--qrels", **again, help="file of reference grades (BEIR or TREC qrels)")
        judgments = "files of grades that name their assessors (judgments.jsonl, or a table)"
        add("--judgments", **several, help=judgments)
        add("--pairs", **again, help="file of candidate pairs, with or without teacher_score and gold")
        add("--runs", **several, help="TREC runs whose documents become candidates")
        add("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        add_arguments(parser, ImportOptions)
        add("--dry-run", action="store_true", help="validate and count without importing")

    def run(self, **given: Any) -> object:
        options, columns = read_arguments(ImportOptions, given), parse_columns(given["column"])
        with TemporaryDirectory() as folder:
            found = [source for path in given["files"] for source in list_sources(path)]
            for pattern in given["leave_out"]:
                found = _leave_out(found, pattern)
            if name := given["ir_datasets"]:
                found += [FileSource(file, name=f"{name}/{file.name}") for file in write_files(name, Path(folder))]
            for source in found:
                source.fields = columns
            recognised, parts = self._recognise(found) if found else {}, {}
            for part in PARTS:
                if part in recognised and given[part]:
                    raise BadInput(f"--{part}: the files hold it, too; leave one of them out")
                parts[part] = recognised.get(part) or [FileSource(path, fields=columns) for path in given[part]]
            unused = find_unused(parts)
            for name, names in unused.items():
                told = "; ".join(f"{column} ({reason})" for column, reason in names.items())
                self.stderr.write(f"{name}: columns that are not read: {told}")
            files = ImportFiles(**parts, options=options, dry_run=given["dry_run"])
            report = import_collection(given["name"], files, ProgressLine(self.stderr.write))
            report["unused_columns"] = unused
        for line in summarise_import(report):
            self.say(line)
        return report

    def _recognise(self, sources: list[FileSource]) -> dict[str, list[FileSource]]:
        """Return files that no option names by what they hold."""
        found = [(source, detect(source)) for source in sources]
        find_conflicts(found)
        for source, one in found:
            problem = one.problem if one.problem.startswith(str(source)) else f"{source}: {one.problem}"
            # In an archive there may be a licence, or a picture. A file that was named is imported, and data are.
            if one.problem and not source.is_part:
                raise BadInput(problem)
            if one.is_open:
                raise BadInput(f"{problem} (--leave-out {source.name.rpartition('/')[2]})")
            self.stderr.write(f"{problem}; left out" if one.problem else f"{source}: {one.kind}")
        return sort_files((source, one.kind) for source, one in found)


def _leave_out(sources: list[FileSource], pattern: str) -> list[FileSource]:
    """Return the files without those whose name, or path from a folder on, is as the pattern says. Raises BadInput."""
    left = [one for one in sources if not fnmatch(f"/{one.name}", f"*/{pattern}")]
    if len(left) == len(sources):
        raise BadInput(f"--leave-out {pattern}: no file is called so")
    return left


def find_unused(parts: Mapping[str, list[FileSource]]) -> dict[str, dict[str, str]]:
    """Return the columns of tables that nothing reads, with the reason, by the names of the files that have some."""
    read: dict[str, tuple[FileSource, set[str]]] = {}
    for part, sources in parts.items():
        for source in sources:
            read.setdefault(str(source), (source, set()))[1].add("documents" if part == "corpus" else part)
    found = {}
    for name, (source, held) in read.items():
        table = tables.read_table(source)
        if table and (unused := tables.unused_columns(table, held)):
            found[name] = unused
    return found


def summarise_import(report: Mapping[str, Any]) -> list[str]:
    """Return the report as lines for people."""
    parts = ("documents", "queries", "pairs", "judgments")
    counted = ", ".join(f"{report[part]:,} {part}" for part in parts)
    lines = [f"{report['collection']}: {counted}"]
    for verb, counts in (("New", report["new"]), ("Updated", report["updated"])):
        if any(counts.values()):
            lines.append(f"{verb}: " + ", ".join(f"{n:,} {part}" for part, n in counts.items() if n))
    n = {what: f"{count:,}" for what, count in report.items() if isinstance(count, int)}
    repeated = ", ".join(f"{count:,} of {part}" for part, count in report["repeated"].items() if count)
    unknown = "; ".join(report["unknown_first"])
    unknown += ", ..." if report["unknown"] > len(report["unknown_first"]) else ""
    runs = ", ".join(report["runs_taken"])
    grades = ", ".join(f"{count:,} in {name}" for name, count in report["qrels"].items())
    notes = {
        "Nothing changed: the collection holds all of this already.": not report["changed"],
        "0 pairs: name candidates with --pairs, --runs, --bm25 K or --qrels.": not report["pairs"],
        f"{n['labels_changed']} labels were settled by imported grades.": report["labels_changed"],
        f"{n['empty_documents']} documents without text were kept.": report["empty_documents"],
        f"Repeated rows that count once: {repeated}.": repeated,
        f"{n['unknown']} rows with unknown ids were left out: {unknown}": report["unknown"],
        f"Runs of these names are kept already and were not replaced: {runs}.": runs,
        f"{n['own_document']} candidates were their own query and were left out; --keep-self keeps them.": report[
            "own_document"
        ],
        f"{n['long_documents']} documents have more than {SHOWN:,} characters: judges read the first "
        f"{SHOWN:,} (long_documents of configure_collection says otherwise).": report["long_documents"],
        f"{n['grades_below_zero']} grades below 0 were left out: they mean not judged.": report["grades_below_zero"],
        f"Grades by file: {grades}.": len(report["qrels"]) > 1,
        "Dry run: nothing was written.": report["dry_run"],
    }
    return lines + [line for line, is_so in notes.items() if is_so]
