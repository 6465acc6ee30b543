"""`import_collection NAME --corpus F --queries F ...`: documents, queries, candidates and reference grades."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.importing.service import ImportFiles, ImportReport, import_collection
from corpus.importing.staging import ProgressLine


class Command(QuorumCommand):
    """Import a collection; the same files again change nothing."""

    act = "import.files"
    help = "Import a collection in BEIR (JSON Lines) or TREC (XML) format, plain or gzip."

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("name", help="lower-case letters, digits, - and _")
        add("--corpus", type=Path, required=True, metavar="F", help="file of documents")
        add("--queries", type=Path, required=True, metavar="F", help="file of queries, with or without answers")
        add("--qrels", type=Path, metavar="F", help="file of reference grades (BEIR or TREC qrels)")
        add("--pairs", type=Path, metavar="F", help="file of candidate pairs, with or without teacher_score and gold")
        add("--runs", type=Path, nargs="+", default=[], metavar="F", help="TREC runs whose documents become candidates")
        add("--bm25", type=int, default=0, metavar="K", help="make the top K documents by BM25 candidates")
        add("--depth", type=int, default=10, help="number of top ranks of each run that become candidates")
        add("--qrels-pairs", action="store_true", help="make the pairs of the qrels candidates too")
        add("--grades", type=int, metavar="MAX", help="highest grade of the scale (default: 3)")
        add("--query-ids", choices=["num", "position"], default="num", help="where query ids come from")
        add("--empty", choices=["refuse", "keep"], default="refuse", help="what to do with documents that have no text")
        add("--update", action="store_true", help="update changed texts as new versions")
        add("--dry-run", action="store_true", help="validate and count without importing")

    def run(self, **options: Any) -> object:
        given = {one.name: options[one.name] for one in fields(ImportFiles) if one.name in options}
        given |= {"by_position": options["query_ids"] == "position", "keep_empty": options["empty"] == "keep"}
        report = import_collection(options["name"], ImportFiles(**given), ProgressLine(self.stderr.write))
        for line in summarise_import(report):
            self.say(line)
        return asdict(report)


def summarise_import(report: ImportReport) -> list[str]:
    """Return the report as lines for people."""
    parts = ("documents", "queries", "pairs", "judgments")
    counted = ", ".join(f"{getattr(report, part):,} {part}" for part in parts)
    lines = [f"{report.collection}: {counted}"]
    for verb, counts in (("New", report.new), ("Updated", report.updated)):
        if any(counts.values()):
            lines.append(f"{verb}: " + ", ".join(f"{n:,} {part}" for part, n in counts.items() if n))
    if not report.changed:
        lines.append("Nothing changed: the collection holds all of this already.")
    if not report.pairs:
        lines.append("0 pairs: name candidates with --pairs, --runs, --bm25 K or --qrels.")
    if report.empty_documents:
        lines.append(f"{report.empty_documents:,} documents without text were kept.")
    if report.grades_below_zero:
        lines.append(f"{report.grades_below_zero:,} grades below 0 were left out: they mean not judged.")
    if report.dry_run:
        lines.append("Dry run: nothing was written.")
    return lines
