"""`import_collection NAME --corpus F --queries F ...`: documents, queries, candidates and reference grades."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.importing.service import ImportFiles, ImportReport, import_collection
from corpus.importing.staging import ProgressLine


class Command(QuorumCommand):
    """Import a collection; the same files again change nothing."""

    act = "import.files"
    help = "Import a collection in BEIR (JSON lines) or TREC (XML) format, plain or gzip."

    def arguments(self, parser: CommandParser) -> None:
        """The options of the contract."""
        parser.add_argument("name", help="lower-case letters, digits, - and _")
        parser.add_argument("--corpus", type=Path, required=True, metavar="F", help="documents")
        parser.add_argument("--queries", type=Path, required=True, metavar="F", help="queries, perhaps with answers")
        parser.add_argument("--qrels", type=Path, metavar="F", help="reference grades (BEIR or TREC qrels)")
        parser.add_argument("--pairs", type=Path, metavar="F", help="candidates, perhaps with teacher_score and gold")
        parser.add_argument("--runs", type=Path, nargs="+", default=[], metavar="F", help="candidates: TREC runs")
        parser.add_argument("--bm25", type=int, default=0, metavar="K", help="candidates: the best K by BM25")
        parser.add_argument("--depth", type=int, default=10, help="ranks of each run that are candidates")
        parser.add_argument("--qrels-pairs", action="store_true", help="the qrels' pairs are candidates too")
        parser.add_argument("--grades", type=int, metavar="MAX", help="the highest grade (3)")
        parser.add_argument("--query-ids", choices=["num", "position"], default="num", help="where ids come from")
        parser.add_argument("--empty", choices=["refuse", "keep"], default="refuse", help="documents without text")
        parser.add_argument("--update", action="store_true", help="a changed text becomes a new version")
        parser.add_argument("--dry-run", action="store_true", help="check and count, change nothing")

    def run(self, **options: Any) -> object:
        """Import, then say what changed."""
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
        return report.document()


def summarise_import(report: ImportReport) -> list[str]:
    """The report for people."""
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
