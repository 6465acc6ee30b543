"""import_runs NAME F...: TREC runs become runs of a collection."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.runs.importing import import_runs, name_of
from corpus.collections.audit_log import shell_user
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing.columns import COLUMN_HELP, parse_columns
from corpus.importing.staging import ProgressLine
from corpus.importing.tables import describe_unused


class Command(QuorumCommand):
    act = "runs.imported"
    help = "Import TREC runs, plain or gzip. If any line is wrong, nothing is imported and every error is listed."

    def arguments(self, parser: CommandParser) -> None:
        """Add the collection, the files and what is told of them."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "files", nargs="+", metavar="F", help="TREC run file, or NAME=FILE (default name: the file's)"
        )
        parser.add_argument("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        parser.add_argument("--instruction", default="", metavar="TEXT", help="instruction that the systems were given")
        parser.add_argument(
            "--skip-unknown", action="store_true", help="skip lines with unknown query or document ids and count them"
        )
        parser.add_argument(
            "--keep-self", action="store_true", help="keep a query that is a document itself in its own ranking"
        )

    def run(self, **options: Any) -> object:
        """Import the files, and say what came in."""
        collection = collection_named(options["name"])
        files = paths_by_name(options["files"])
        columns = parse_columns(options["column"])
        for path in files.values():
            if unused := describe_unused(FileSource(path, fields=columns), ["runs"]):
                self.stderr.write(unused)
        given = {name: options[name] for name in ("instruction", "skip_unknown", "keep_self")}
        found = import_runs(
            collection, files, shell_user(), columns=columns, **given, progress=ProgressLine(self.stderr.write)
        )
        for _run, told in found:
            self.say(format_imported(told))
        return {"collection": collection.name, "runs": [told for _run, told in found]}


def paths_by_name(files: list[str]) -> dict[str, Path]:
    """Paths by the runs' names. Raises BadInput when two runs would have the same."""
    found: dict[str, Path] = {}
    for text in files:
        before, given, after = text.partition("=")
        is_named = bool(given) and not Path(text).exists()
        name, path = (before, Path(after)) if is_named else (name_of(Path(text)), Path(text))
        if name in found:
            raise BadInput(f"Two runs would be called {name}: name one of them, as in other={path}")
        found[name] = path
    return found


def format_imported(told: Mapping[str, Any]) -> str:
    """A line for people on an imported run."""
    counted = f"{told['name']}: {told['lines']:,} lines of {told['queries']:,} queries"
    left = {
        "lines with an unknown query left out": told["unknown_queries"],
        "lines with an unknown document left out": told["unknown_documents"],
        "lines left out that their query excludes or is itself": told["excluded"],
        "queries missing (they count 0)": told["missing_queries"],
    }
    return ", ".join([counted, *(f"{number:,} {what}" for what, number in left.items() if number)])
