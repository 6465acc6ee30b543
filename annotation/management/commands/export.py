"""export NAME --format F --out DIR: labels, judgments or debates as files with a manifest."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.exports.formats import FORMATS, format_named
from annotation.exports.snapshots import begin, fill
from corpus.commands import QuorumCommand
from corpus.errors import BadInput, QuorumError
from corpus.models import Collection


class Command(QuorumCommand):
    help = "Write an export and its manifest into a new or empty folder."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the collection")
        parser.add_argument("--format", required=True, help=f"one of {', '.join(FORMATS)}")
        parser.add_argument("--out", required=True, metavar="DIR", help="a new or empty folder")
        parser.add_argument("--origins", metavar="a,b,...", help="only labels of these: people, adjudicator, a policy")
        parser.add_argument("--split", help="share of the queries for training (formats for training)")
        parser.add_argument("--seed", help="decides which queries (formats for training)")
        parser.add_argument("--teacher", help="scores, votes or labels (formats for training)")

    def run(self, **options: Any) -> object:
        form = format_named(options["format"])
        for option in ("split", "seed", "teacher"):
            if options[option] is not None:
                raise BadInput(f"--{option} is for training formats; {form.name} is one file and never split")
        collection = Collection.objects.filter(name=options["name"]).first()
        if collection is None:
            raise BadInput(f"no collection named {options['name']}")
        origins = options["origins"].split(",") if options["origins"] is not None else None
        snapshot = begin(collection=collection, form=form, folder=Path(options["out"]).resolve(), origins=origins)
        try:
            fill(snapshot)
        except BadInput:
            snapshot.delete()
            raise
        except OSError as error:
            raise QuorumError(f"{error}; nothing was left in {options['out']}") from None
        counts = snapshot.manifest["counts"]
        self.say(f"{counts['rows']} rows of {counts['queries']} queries in {Path(options['out']) / form.file}")
        return snapshot.manifest
