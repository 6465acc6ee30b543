"""`import_runs NAME F...`: import TREC runs as runs of a collection."""

from typing import Any

from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from benchmark.runs.importing import format_imported, paths_by_name
from benchmark.runs.options import RunImportOptions
from benchmark.runs.services import import_runs
from corpus.commands import QuorumCommand, collection_named
from corpus.formats.files import FileSource
from corpus.importing.columns import COLUMN_HELP, parse_columns
from corpus.importing.staging import ProgressLine
from corpus.importing.tables import describe_unused


class Command(QuorumCommand):
    help = "Import TREC runs, plain or gzip. If any line is wrong, nothing is imported and every error is listed."

    def arguments(self, parser: CommandParser) -> None:
        """Add the collection, the files and their options."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "files", nargs="+", metavar="F", help="TREC run file, or NAME=FILE (default name: the file's)"
        )
        parser.add_argument("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        add_arguments(parser, RunImportOptions)

    def run(self, **arguments: Any) -> object:
        """Import the files, and print a line for each run."""
        collection, options = collection_named(arguments["name"]), read_arguments(RunImportOptions, arguments)
        sources: dict[str, Any] = {
            "files": paths_by_name(arguments["files"]),
            "columns": parse_columns(arguments["column"]),
        }
        for path in sources["files"].values():
            if unused := describe_unused(FileSource(path, fields=sources["columns"]), ["runs"]):
                self.stderr.write(unused)
        sources["progress"] = ProgressLine(self.stderr.write)
        counts = [counts for _run, counts in import_runs(self.actor, collection, options, **sources)]
        for run_counts in counts:
            self.say(format_imported(run_counts))
        return {"collection": collection.name, "runs": counts}
