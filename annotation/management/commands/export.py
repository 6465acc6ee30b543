"""`export NAME --format F --out DIR`: labels, judgments, debates or training sets, as files."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext_lazy as _

from actions.options import add_arguments, read_arguments
from annotation.exports.label_sources.benchmark_tables import run_file
from annotation.exports.options import ExportOptions
from annotation.exports.query_splits.parts import SPLITS
from annotation.exports.ratings.scales import describe_ratings
from annotation.exports.services import create_export
from corpus.commands import ActionCommand, collection_named
from corpus.errors import BadOption, QuorumError


class Command(ActionCommand):
    action = create_export
    help = "Write an export and its manifest into a new or empty folder."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        add_arguments(parser, ExportOptions, without=["split"])
        parser.add_argument("--out", required=True, metavar="DIR", help="output folder; must be new or empty")
        parser.add_argument(
            "--split",
            action="append",
            default=[],
            metavar="S|SPLIT=NAME",
            help="Share of queries for training (default: 0.9; 1 writes no dev file); test=NAME, dev=NAME or "
            "train=NAME: the queries of a kept list (query_splits), or those that carry this split; may be repeated",
        )

    def run(self, **arguments: Any) -> object:
        """Write the export and print its contents."""
        collection = collection_named(arguments["name"])
        # The option `split` is a share, or names of splits.
        texts = arguments["split"]
        shares = [text for text in texts if "=" not in text]
        if len(shares) > 1:
            raise BadOption("split", _("Give one share; names are given as test=NAME."))
        named: dict[str, str] = {}
        for side, _equals, name in (text.partition("=") for text in texts if "=" in text):
            if side not in SPLITS or not name:
                raise BadOption("split", _("Enter a share such as 0.9, or train=NAME, dev=NAME or test=NAME."))
            if side in named:
                raise BadOption("split", _("Give each of train, dev and test at most one name."))
            named[side] = name
        splits: dict[str, Any] = ({"split": shares[0]} if shares else {}) | ({"named_splits": named} if named else {})
        options = read_arguments(ExportOptions, {**arguments, "split": None}, **splits)
        with run_file(collection, options.run) if options.run else nullcontext() as run:
            options = options.model_copy(update={"run": run}) if run else options
            try:
                snapshot = create_export(self.actor, collection, options, folder=Path(arguments["out"]).resolve())
            except OSError as error:
                raise QuorumError(f"{error}; nothing was left in {arguments['out']}") from None
        return self.report(snapshot.manifest, arguments["out"])

    def report(self, manifest: dict[str, Any], out: str) -> object:  # type: ignore[override]
        counts, files = manifest["counts"], ", ".join(file["name"] for file in manifest["files"])
        self.say(f"{counts['rows']} rows of {counts['queries']} queries in {out}: {files}")
        if (left_out := manifest.get("left_out")) and "left_out" not in counts:
            self.say(f"left out: {left_out['pairs']} ({left_out['reason']})")
        if ratings := manifest.get("ratings"):
            self.say(f"rating of each grade: {describe_ratings(ratings['scale'])}")
            if same := ratings.get("left_out_with_same_text"):
                self.say(f"left out: {same} (queries with the same text label the document differently)")
        for reason, n in counts.get("left_out", {}).items():
            self.say(f"left out: {n} ({reason})")
        if (shared := manifest.get("shared_documents")) is not None:
            self.say(
                f"{shared} pairs of train share a document with dev or test (--near-duplicates 0.8 leaves them out)"
            )
        return manifest
