"""`import_queries NAME log.csv --sample 200 --by pptss`: add queries drawn from a query log, with their counts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from actions.options import add_arguments, read_arguments
from corpus.commands import QuorumCommand
from corpus.formats.files import FileSource
from corpus.importing.columns import parse_columns
from corpus.importing.service import ensure_collection
from corpus.importing.staging import ProgressLine
from corpus.query_logs.options import QueryLogOptions
from corpus.query_logs.services import import_queries


class Command(QuorumCommand):
    """Import queries of a log; importing the same log again changes nothing."""

    help = "Import queries from a query log: a table of queries and counts, or one query a line; all, or a sample."

    def arguments(self, parser: CommandParser) -> None:
        """Add the collection, the file, and the options of the sample."""
        parser.add_argument("name", help="name of the collection, which is created if it does not exist")
        parser.add_argument(
            "file", type=Path, metavar="F", help="CSV, TSV, Excel, Parquet or JSON, or one query a line"
        )
        columns = "which column is query or count, where its header does not say so"
        parser.add_argument("--column", action="append", default=[], metavar="HEADER=FIELD", help=columns)
        add_arguments(parser, QueryLogOptions)

    def run(self, **arguments: Any) -> object:
        """Import the log, and print what was read and drawn."""
        options, columns = read_arguments(QueryLogOptions, arguments), parse_columns(arguments["column"])
        source = FileSource(arguments["file"])
        # A collection that is created for a log that cannot be read is not left behind.
        with transaction.atomic():
            collection, is_new = ensure_collection(arguments["name"])
            sources: dict[str, Any] = {"source": source, "columns": columns}
            progress = ProgressLine(self.stderr.write)
            report = import_queries(self.actor, collection, options, **sources, progress=progress)
        for line in summarise_log(report):
            self.say(line)
        return {**report, "changed": is_new or report["changed"]}


def summarise_log(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines of text about an import of a query log."""
    n = {name: f"{value:,}" for name, value in report.items() if isinstance(value, int)}
    yield f"{report['collection']}: {n['lines']} lines, {n['distinct']} different queries, asked {n['traffic']} times"
    way = f" by {report['by']}, seed {report['seed']}" if report["sampled"] < report["distinct"] else ""
    yield f"Taken: {n['sampled']} queries{way}: {report['share']:.1%} of the traffic"
    if strata := report["strata"]:
        yield "Drawn: " + ", ".join(
            f"{part['sampled']:,} of {part['queries']:,} of the {name}" for name, part in strata.items()
        )
    if queries := report["certain"]["queries"]:
        traffic, mean = report["certain"]["traffic"] / report["traffic"], queries / report["sampled"]
        yield (
            f"Drawn for certain: {queries:,} queries with {traffic:.1%} of the traffic; in a plain mean of the sample "
            f"they count {mean:.1%}"
        )
    yield f"New: {n['new']} queries, with ids made from their words; counts renewed: {n['renewed']}; now {n['queries']}"
    notes = {
        f"Skipped: {n['empty']} lines without a query, {n['unasked']} with a count of 0.": report["empty"]
        or report["unasked"],
        "The log has no column of counts: each line counted once.": report["counted_by"] == "lines",
        "Nothing changed: the collection holds all of this already.": not report["changed"],
    }
    yield from (line for line, applies in notes.items() if applies)
