"""`import_judgments NAME --assessor A --kind human|judge|reference F`: import grades from elsewhere."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from corpus.formats.files import FileSource
from corpus.importing.assess import DUPLICATE, KINDS, import_judgments
from corpus.importing.columns import COLUMN_HELP, parse_columns
from corpus.importing.staging import ProgressLine
from corpus.importing.tables import describe_unused


class Command(QuorumCommand):
    """Import judgments; importing the same file again changes nothing."""

    act = "import.judgments"
    help = "Import judgments from qrels, from a table with query_id,doc_id,grade[,assessor], or from judgments.jsonl."

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("name", help="name of the collection")
        add("file", type=Path, metavar="F", help="qrels, a table, or judgments.jsonl")
        add("--assessor", required=True, metavar="A", help="name of the assessor for rows that name none")
        kind = "kind of assessor; only human grades resolve pairs, others are for measuring"
        add("--kind", required=True, choices=list(KINDS), help=kind)
        add("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        add("--skip-invalid", action="store_true", help="skip invalid rows and count them")

    def run(self, **options: Any) -> object:
        collection, progress = collection_named(options["name"]), ProgressLine(self.stderr.write)
        assessor_options = {name: options[name] for name in ("assessor", "kind", "skip_invalid")}
        source = FileSource(options["file"], fields=parse_columns(options["column"]))
        if unused := describe_unused(source, ["judgments"]):
            self.stderr.write(unused)
        report = import_judgments(collection, source, **assessor_options, progress=progress)
        added = f"{report['judgments']:,} judgments added, {report['unchanged']:,} were there already"
        self.say(f"{report['collection']}: {added}")
        for kind, count in report["skipped"].items():
            repeats = kind == DUPLICATE
            self.say(f"Repeated rows that count once: {count:,}." if repeats else f"Left out: {count:,} {kind}")
        if unjudged := report["grades_below_zero"]:
            self.say(f"{unjudged:,} grades below 0 were left out: they mean not judged.")
        return report
