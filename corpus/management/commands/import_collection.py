"""`import_collection NAME --corpus F --queries F ...`: documents, queries, candidates and reference grades."""

from dataclasses import asdict
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
        parser.add_argument("name", help="lower-case letters, digits, - and _")
        parser.add_argument("--corpus", type=Path, required=True, metavar="F", help="file of documents")
        parser.add_argument(
            "--queries", type=Path, required=True, metavar="F", help="file of queries, with or without answers"
        )
        parser.add_argument("--qrels", type=Path, metavar="F", help="file of reference grades (BEIR or TREC qrels)")
        parser.add_argument(
            "--pairs", type=Path, metavar="F", help="file of candidate pairs, with or without teacher_score and gold"
        )
        parser.add_argument(
            "--runs", type=Path, nargs="+", default=[], metavar="F", help="TREC runs whose documents become candidates"
        )
        parser.add_argument(
            "--bm25", type=int, default=0, metavar="K", help="make the top K documents by BM25 candidates"
        )
        parser.add_argument(
            "--depth", type=int, default=10, help="number of top ranks of each run that become candidates"
        )
        parser.add_argument("--qrels-pairs", action="store_true", help="make the pairs of the qrels candidates too")
        parser.add_argument("--grades", type=int, metavar="MAX", help="highest grade of the scale (default: 3)")
        parser.add_argument("--query-ids", choices=["num", "position"], default="num", help="where query ids come from")
        parser.add_argument(
            "--empty", choices=["refuse", "keep"], default="refuse", help="what to do with documents that have no text"
        )
        parser.add_argument("--update", action="store_true", help="update changed texts as new versions")
        parser.add_argument("--dry-run", action="store_true", help="validate and count without importing")

    def run(self, **options: Any) -> object:
        files = ImportFiles(
            corpus=options["corpus"],
            queries=options["queries"],
            qrels=options["qrels"],
            pairs=options["pairs"],
            runs=tuple(options["runs"]),
            bm25=options["bm25"],
            depth=options["depth"],
            qrels_pairs=options["qrels_pairs"],
            grades=options["grades"],
            by_position=options["query_ids"] == "position",
            keep_empty=options["empty"] == "keep",
            update=options["update"],
            dry_run=options["dry_run"],
        )
        report = import_collection(options["name"], files, ProgressLine(self.stderr.write))
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
