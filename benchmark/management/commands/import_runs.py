"""import_runs NAME F...: TREC runs become runs of a collection."""

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
        """Add the collection, the files and what is told of them."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "files", nargs="+", metavar="F", help="TREC run file, or NAME=FILE (default name: the file's)"
        )
        parser.add_argument("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        add_arguments(parser, RunImportOptions)

    def run(self, **given: Any) -> object:
        """Import the files, and say what came in."""
        collection, options = collection_named(given["name"]), read_arguments(RunImportOptions, given)
        about: dict[str, Any] = {"files": paths_by_name(given["files"]), "columns": parse_columns(given["column"])}
        for path in about["files"].values():
            if unused := describe_unused(FileSource(path, fields=about["columns"]), ["runs"]):
                self.stderr.write(unused)
        about["progress"] = ProgressLine(self.stderr.write)
        counts = [counts for _run, counts in import_runs(self.actor, collection, options, **about)]
        for of_run in counts:
            self.say(format_imported(of_run))
        return {"collection": collection.name, "runs": counts}
