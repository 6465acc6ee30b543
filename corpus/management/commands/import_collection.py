"""`import_collection NAME --corpus F --queries F ...`: documents, queries, candidates and reference grades."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from corpus.importing.detection import detect, keep_one_each, list_sources
from corpus.importing.files import FileSource
from corpus.importing.service import ImportFiles, import_collection, plan_import
from corpus.importing.staging import ProgressLine
from corpus.importing.tables import EVERY_FIELD

PARTS = ("corpus", "queries", "qrels", "pairs", "runs")
SEVERAL = ("qrels", "runs")  # Parts of which there may be more than one file.


class Command(QuorumCommand):
    """The command that imports a collection; importing the same files again changes nothing."""

    act = "import.files"
    help = "Import a collection from CSV, TSV, BEIR (JSON Lines) or TREC files, plain, gzip or in a zip archive."

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("name", help="lower-case letters, digits, - and _")
        add(
            "files", type=Path, nargs="*", metavar="F", help="files of any kind or a zip of them, told by their content"
        )
        add("--corpus", type=Path, metavar="F", help="file of documents")
        add("--queries", type=Path, metavar="F", help="file of queries, with or without answers")
        add("--qrels", type=Path, metavar="F", help="file of reference grades (BEIR or TREC qrels)")
        add("--pairs", type=Path, metavar="F", help="file of candidate pairs, with or without teacher_score and gold")
        add("--runs", type=Path, nargs="+", default=[], metavar="F", help="TREC runs whose documents become candidates")
        add("--bm25", type=int, default=0, metavar="K", help="make the top K documents by BM25 candidates")
        add("--depth", type=int, default=10, help="number of top ranks of each run that become candidates")
        add("--qrels-pairs", action="store_true", help="make the pairs of the qrels candidates too")
        columns = f"what a column of a table is, where its header does not say so: {', '.join(EVERY_FIELD)}"
        add("--column", action="append", default=[], metavar="HEADER=FIELD", help=columns)
        add("--grades", type=int, metavar="MAX", help="highest grade of the scale (default: 3)")
        add("--query-ids", choices=["num", "position"], default="num", help="where query ids come from")
        add("--empty", choices=["refuse", "keep"], default="refuse", help="what to do with documents that have no text")
        add("--update", action="store_true", help="update changed texts as new versions")
        add("--dry-run", action="store_true", help="validate and count without importing")

    def run(self, **options: Any) -> object:
        named = {one.name: options[one.name] for one in fields(ImportFiles) if one.name in options}
        named["qrels"] = tuple(filter(None, [options["qrels"]]))
        named |= {"by_position": options["query_ids"] == "position", "keep_empty": options["empty"] == "keep"}
        if options["files"]:
            self._recognise(options["files"], named, options["column"])
        for part in PARTS:
            paths = [path for path in (named[part] if part in SEVERAL else [named[part]]) if path]
            sources = [_open_source(path, options["column"]) if isinstance(path, Path) else path for path in paths]
            named[part] = tuple(sources) if part in SEVERAL else next(iter(sources), None)
        files = ImportFiles(**named)
        report = import_collection(options["name"], files, ProgressLine(self.stderr.write))
        for line in summarise_import(report):
            self.say(line)
        return report

    def _recognise(self, paths: list[Path], named: dict[str, Any], columns: list[str]) -> None:
        """Put files that no option names where they belong, by what they hold."""
        found = []
        for path in paths:
            sources = [_open_source(one, columns) for one in list_sources(path)]
            found += [(source, detect(source)) for source in sources]
        keep_one_each([(source, one) for source, one in found if source.member])
        for source, one in found:
            problem = one.problem if one.problem.startswith(str(source)) else f"{source}: {one.problem}"
            # In an archive there may be more than is imported; a file that was named is.
            if one.problem and not source.member:
                raise BadInput(problem)
            self.stderr.write(f"{problem}; left out" if one.problem else f"{source}: {one.kind}")
        planned = plan_import((source, one.kind) for source, one in found)
        for part in PARTS:
            if getattr(planned, part) and named[part]:
                raise BadInput(f"--{part}: the files hold it, too; leave one of them out")
            named[part] = named[part] or getattr(planned, part)


def _open_source(given: Path | FileSource, columns: list[str]) -> FileSource:
    """Return the file with what its columns are. Raises BadInput for what is no HEADER=FIELD."""
    pairs = [one.rpartition("=")[::2] for one in columns]
    if wrong := next((one for one, (header, _) in zip(columns, pairs, strict=True) if not header), ""):
        raise BadInput(f"--column {wrong}: write HEADER=FIELD, for example 'Search term=query'")
    path, member = (given.path, given.member) if isinstance(given, FileSource) else (given, "")
    return FileSource(path, member=member, fields=dict(pairs))


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
    if report["empty_documents"]:
        lines.append(f"{report['empty_documents']:,} documents without text were kept.")
    if report["grades_below_zero"]:
        lines.append(f"{report['grades_below_zero']:,} grades below 0 were left out: they mean not judged.")
    if len(report["qrels"]) > 1:
        lines.append("Grades by file: " + ", ".join(f"{n:,} in {name}" for name, n in report["qrels"].items()) + ".")
    if report["dry_run"]:
        lines.append("Dry run: nothing was written.")
    return lines
