"""`import_collection NAME F...`: import a collection from files, which options such as --corpus may name by content."""

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
from corpus.importing.detection import compare_files, detect, list_sources
from corpus.importing.ir_datasets_cache import write_files
from corpus.importing.options import ImportOptions
from corpus.importing.service import PARTS, ImportFiles, import_collection, sort_files
from corpus.importing.sources import describe_sources
from corpus.importing.staging import ProgressLine


class Command(QuorumCommand):
    """Import a collection; importing the same files again changes nothing."""

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
        repeatable: dict[str, Any] = {"type": Path, "action": "append", "default": [], "metavar": "F"}
        multiple: dict[str, Any] = {"type": Path, "nargs": "+", "default": [], "metavar": "F"}
        add("--corpus", **repeatable, help="file of documents; may be given several times, as may the next ones")
        add("--queries", **repeatable, help="file of queries, with or without answers")
        add("--qrels", **repeatable, help="file of reference grades (BEIR or TREC qrels)")
        judgments = "files of grades that name their assessors (judgments.jsonl, or a table)"
        add("--judgments", **multiple, help=judgments)
        add("--pairs", **repeatable, help="file of candidate pairs, with or without teacher_score and gold")
        add("--runs", **multiple, help="TREC runs whose documents become candidates")
        add("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        add_arguments(parser, ImportOptions)
        add("--dry-run", action="store_true", help="validate and count without importing")

    def run(self, **arguments: Any) -> object:
        """Import the files.

        1. List the files of folders, archives and workbooks, without those left out.
        2. Recognise them by content, and add the files that options name.
        3. Import all of them, and print the report.
        """
        options, columns = read_arguments(ImportOptions, arguments), parse_columns(arguments["column"])
        with TemporaryDirectory() as folder:
            sources = [source for path in arguments["files"] for source in list_sources(path)]
            for pattern in arguments["leave_out"]:
                # The pattern is matched with the name, or with the end of the path.
                remaining = [source for source in sources if not fnmatch(f"/{source.name}", f"*/{pattern}")]
                if len(remaining) == len(sources):
                    raise BadInput(f"--leave-out {pattern}: no file is called so")
                sources = remaining
            if name := arguments["ir_datasets"]:
                sources += [FileSource(file, name=f"{name}/{file.name}") for file in write_files(name, Path(folder))]
            for source in sources:
                source.fields = columns
            recognised, parts = self._recognise(sources) if sources else {}, {}
            for part in PARTS:
                if part in recognised and arguments[part]:
                    raise BadInput(f"--{part}: the files hold it, too; leave one of them out")
                parts[part] = recognised.get(part) or [FileSource(path, fields=columns) for path in arguments[part]]
            unused = find_unused(parts)
            for name, names in unused.items():
                listed = "; ".join(f"{column} ({reason})" for column, reason in names.items())
                self.stderr.write(f"{name}: columns that are not read: {listed}")
            files = ImportFiles(**parts, options=options, dry_run=arguments["dry_run"])
            report = import_collection(arguments["name"], files, ProgressLine(self.stderr.write))
            report["unused_columns"] = unused
        for line in summarise_import(report):
            self.say(line)
        return report

    def _recognise(self, sources: list[FileSource]) -> dict[str, list[FileSource]]:
        """Return the files by content. Raises BadInput for a file that is not recognised."""
        detections = [(source, detect(source)) for source in sources]
        compare_files(detections)
        for source, detection in detections:
            problem = (
                detection.problem if detection.problem.startswith(str(source)) else f"{source}: {detection.problem}"
            )
            # Only a file inside an archive, such as a licence or a picture, may be left out, unless it looks like data.
            if detection.problem and not source.is_part:
                raise BadInput(problem)
            if detection.is_open:
                raise BadInput(f"{problem} (--leave-out {source.name.rpartition('/')[2]})")
            guess = ""
            if detection.is_uncertain and not source.is_part:
                other = "--corpus" if detection.kind == "queries" else "--queries"
                guess = f" (short texts without titles; if they are no {detection.kind}, name the file by {other})"
            self.stderr.write(f"{problem}; left out" if detection.problem else f"{source}: {detection.kind}{guess}")
        return sort_files((source, detection.kind) for source, detection in detections)


def find_unused(parts: Mapping[str, list[FileSource]]) -> dict[str, dict[str, str]]:
    """Return the columns of tables that are not read, with the reasons, by file name."""
    kinds_by_file: dict[str, tuple[FileSource, set[str]]] = {}
    for part, sources in parts.items():
        for source in sources:
            kinds_by_file.setdefault(str(source), (source, set()))[1].add("documents" if part == "corpus" else part)
    unused_by_file = {}
    for name, (source, kinds) in kinds_by_file.items():
        table = tables.read_table(source)
        if table and (unused := tables.unused_columns(table, kinds)):
            unused_by_file[name] = unused
    return unused_by_file


def summarise_import(report: Mapping[str, Any]) -> list[str]:
    """Return the report as lines of text."""
    parts = ("documents", "queries", "pairs", "judgments")
    totals = ", ".join(f"{report[part]:,} {part}" for part in parts)
    lines = [f"{report['collection']}: {totals}"]
    for verb, counts in (("New", report["new"]), ("Updated", report["updated"])):
        if any(counts.values()):
            lines.append(f"{verb}: " + ", ".join(f"{n:,} {part}" for part, n in counts.items() if n))
    sources = describe_sources(report["sources"]) if len(report["sources"]) > 1 else []
    numbers = ", ".join(f"{pairs:,} by {source}" for source, pairs in sources)
    n = {name: f"{count:,}" for name, count in report.items() if isinstance(count, int)}
    repeated = ", ".join(f"{count:,} of {part}" for part, count in report["repeated"].items() if count)
    unknown = "; ".join(report["unknown_first"])
    unknown += ", ..." if report["unknown"] > len(report["unknown_first"]) else ""
    runs = ", ".join(report["runs_taken"])
    grades = ", ".join(f"{count:,} in {name}" for name, count in report["qrels"].items())
    notes = {
        f"Candidates found: {numbers}.": numbers,
        "Nothing changed: the collection holds all of this already.": not report["changed"],
        "0 pairs: name candidates with --pairs, --runs, --bm25 K, --static K or --qrels.": not report["pairs"],
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
    return lines + [line for line, applies in notes.items() if applies]
