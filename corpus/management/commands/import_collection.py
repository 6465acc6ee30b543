"""`import_collection NAME --corpus F --queries F ...`: documents, queries, candidates and reference grades."""

from collections.abc import Mapping
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.document_limit import SHOWN
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import tables
from corpus.importing.assess import KINDS
from corpus.importing.columns import COLUMN_HELP, parse_columns
from corpus.importing.detection import SEVERAL, detect, find_conflicts, list_sources
from corpus.importing.ir_datasets_cache import write_files
from corpus.importing.service import ImportFiles, import_collection, list_files, plan_import
from corpus.importing.staging import ProgressLine

PARTS = ("corpus", "queries", "qrels", "judgments", "pairs", "runs")


class Command(QuorumCommand):
    """The command that imports a collection; importing the same files again changes nothing."""

    act = "import.files"
    help = "Import a collection from CSV, TSV, Excel, Parquet, JSON or TREC files, also gzip, zip archives and folders."

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("name", help="lower-case letters, digits, - and _")
        add(
            "files",
            type=Path,
            nargs="*",
            metavar="F",
            help="files of any kind, or a zip, workbook or folder of them, told by their content",
        )
        left_out = "leave out the files of a folder, archive or workbook with this name (test.jsonl, or test*)"
        add("--leave-out", action="append", default=[], metavar="NAME", help=left_out)
        add("--ir-datasets", metavar="NAME", help="a collection of ir_datasets whose files are on this disk")
        again: dict[str, Any] = {"type": Path, "action": "append", "default": [], "metavar": "F"}
        add("--corpus", **again, help="file of documents; may be given several times, as may the next ones")
        add("--queries", **again, help="file of queries, with or without answers")
        add("--qrels", **again, help="file of reference grades (BEIR or TREC qrels)")
        judgments = "files of grades that name their assessors (judgments.jsonl, or a table)"
        add("--judgments", type=Path, nargs="+", default=[], metavar="F", help=judgments)
        add("--pairs", **again, help="file of candidate pairs, with or without teacher_score and gold")
        add("--runs", type=Path, nargs="+", default=[], metavar="F", help="TREC runs whose documents become candidates")
        add("--bm25", type=int, default=0, metavar="K", help="make the top K documents by BM25 candidates")
        add("--depth", type=int, default=10, help="number of top ranks of each run that become candidates")
        add("--qrels-pairs", action="store_true", help="make the pairs of the qrels candidates too")
        add("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        graded = "whose the grades are: human ones settle pairs, others measure"
        default = "(default: human where a file names its assessors, else reference)"
        add("--graded-by", choices=list(KINDS), default="", help=f"{graded} {default}")
        add("--grades", type=int, metavar="MAX", help="highest grade of the scale (default: 3)")
        add("--query-ids", choices=["num", "position"], default="num", help="where query ids come from")
        add("--empty", choices=["refuse", "keep"], default="refuse", help="what to do with documents that have no text")
        add("--update", action="store_true", help="update changed texts as new versions")
        add("--skip-unknown", action="store_true", help="leave out rows that name no known query or document")
        add("--keep-self", action="store_true", help="keep a query that is a document among its own candidates")
        add("--keep-runs", action="store_true", help="keep the runs as runs of the benchmark, too")
        add("--dry-run", action="store_true", help="validate and count without importing")

    def run(self, **options: Any) -> object:
        named = {one.name: options[one.name] for one in fields(ImportFiles) if one.name in options}
        named |= {"by_position": options["query_ids"] == "position", "keep_empty": options["empty"] == "keep"}
        with TemporaryDirectory() as folder:
            found = [one for path in options["files"] for one in list_sources(path)]
            for pattern in options["leave_out"]:
                found = _leave_out(found, pattern)
            if name := options["ir_datasets"]:
                found += [FileSource(one, name=f"{name}/{one.name}") for one in write_files(name, Path(folder))]
            if found:
                self._recognise([_open_source(one, options["column"]) for one in found], named)
            for part in PARTS:
                paths = list_files(named[part])
                sources = [_open_source(path, options["column"]) if isinstance(path, Path) else path for path in paths]
                is_one = len(sources) < 2 and part not in SEVERAL
                named[part] = next(iter(sources), None) if is_one else tuple(sources)
            unused = find_unused(named)
            for name, columns in unused.items():
                told = "; ".join(f"{column} ({reason})" for column, reason in columns.items())
                self.stderr.write(f"{name}: columns that are not read: {told}")
            report = import_collection(options["name"], ImportFiles(**named), ProgressLine(self.stderr.write))
            report["unused_columns"] = unused
        for line in summarise_import(report):
            self.say(line)
        return report

    def _recognise(self, sources: list[FileSource], named: dict[str, Any]) -> None:
        """Put files that no option names where they belong, by what they hold."""
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
        planned = plan_import((source, one.kind) for source, one in found)
        for part in PARTS:
            if getattr(planned, part) and named[part]:
                raise BadInput(f"--{part}: the files hold it, too; leave one of them out")
            named[part] = named[part] or getattr(planned, part)


def _leave_out(sources: list[FileSource], pattern: str) -> list[FileSource]:
    """Return the files without those whose name, or path from a folder on, is as the pattern says. Raises BadInput."""
    left = [one for one in sources if not fnmatch(f"/{one.name}", f"*/{pattern}")]
    if len(left) == len(sources):
        raise BadInput(f"--leave-out {pattern}: no file is called so")
    return left


def find_unused(named: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the columns of tables that nothing reads, with the reason, by the names of the files that have some."""
    read: dict[str, tuple[FileSource, set[str]]] = {}
    for part in PARTS:
        for source in list_files(named[part]):
            assert isinstance(source, FileSource)
            read.setdefault(str(source), (source, set()))[1].add("documents" if part == "corpus" else part)
    found = {}
    for name, (source, parts) in read.items():
        table = tables.read_table(source)
        if table and (unused := tables.unused_columns(table, parts)):
            found[name] = unused
    return found


def _open_source(given: Path | FileSource, columns: list[str]) -> FileSource:
    """Return the file with what its columns are. Raises BadInput for what is no HEADER=FIELD."""
    fields = parse_columns(columns)
    if isinstance(given, FileSource):
        given.fields = fields
        return given
    return FileSource(given, fields=fields)


def summarise_import(report: Mapping[str, Any]) -> list[str]:
    """Return the report as lines for people."""
    parts = ("documents", "queries", "pairs", "judgments")
    counted = ", ".join(f"{report[part]:,} {part}" for part in parts)
    lines = [f"{report['collection']}: {counted}"]
    for verb, counts in (("New", report["new"]), ("Updated", report["updated"])):
        if any(counts.values()):
            lines.append(f"{verb}: " + ", ".join(f"{n:,} {part}" for part, n in counts.items() if n))
    if not report["changed"]:
        lines.append("Nothing changed: the collection holds all of this already.")
    if not report["pairs"]:
        lines.append("0 pairs: name candidates with --pairs, --runs, --bm25 K or --qrels.")
    if report["labels_changed"]:
        lines.append(f"{report['labels_changed']:,} labels were settled by imported grades.")
    if report["empty_documents"]:
        lines.append(f"{report['empty_documents']:,} documents without text were kept.")
    if repeated := {part: n for part, n in report["repeated"].items() if n}:
        lines.append(
            "Repeated rows that count once: " + ", ".join(f"{n:,} of {part}" for part, n in repeated.items()) + "."
        )
    if report["unknown"]:
        more = ", ..." if report["unknown"] > len(report["unknown_first"]) else ""
        named = "; ".join(report["unknown_first"])
        lines.append(f"{report['unknown']:,} rows with unknown ids were left out: {named}{more}")
    if report["runs_taken"]:
        named = ", ".join(report["runs_taken"])
        lines.append(f"Runs of these names are kept already and were not replaced: {named}.")
    if report["own_document"]:
        lines.append(
            f"{report['own_document']:,} candidates were their own query and were left out; --keep-self keeps them."
        )
    if report["long_documents"]:
        lines.append(
            f"{report['long_documents']:,} documents have more than {SHOWN:,} characters: judges read the first "
            f"{SHOWN:,} (long_documents of configure_collection says otherwise)."
        )
    if report["grades_below_zero"]:
        lines.append(f"{report['grades_below_zero']:,} grades below 0 were left out: they mean not judged.")
    if len(report["qrels"]) > 1:
        lines.append("Grades by file: " + ", ".join(f"{n:,} in {name}" for name, n in report["qrels"].items()) + ".")
    if report["dry_run"]:
        lines.append("Dry run: nothing was written.")
    return lines
