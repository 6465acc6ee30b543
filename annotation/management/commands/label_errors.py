"""`label_errors NAME`: labels that votes, assessors, near-duplicates or a model contradict."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.quality.label_errors.files import NAMES, suspect_values
from annotation.quality.label_errors.suspects import LABEL_ERRORS, describe_suspects, read_suspects
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput


class Command(QuorumCommand):
    help = "Rank the labels of a collection by what speaks against them. No model is asked and no label changes."
    act = "statistics.asked"

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--limit", type=int, default=20, metavar="N", help="suspects to print, the most suspicious first"
        )

    def run(self, **options: Any) -> object:
        if options["limit"] < 1:
            raise BadInput(f"--limit must be 1 or more, not {options['limit']}")
        collection = collection_named(options["name"])
        stored = LABEL_ERRORS.compute_now(collection).values or {}
        ranking = read_suspects(collection)
        suspects = describe_suspects(collection, ranking["suspects"][: options["limit"]])
        self.say(f"{len(ranking['suspects'])} of {stored['compared']} labels have something that speaks against them")
        self.say("  labels by signal: " + ", ".join(f"{name} {n}" for name, n in stored["counts"].items()))
        for suspect in suspects:
            row = suspect["row"]
            label = f"grade {row['grade']} from {row['origin']}"
            reasons = "; ".join(suspect["suspect"].reasons)
            self.say(f"{suspect['place']}. {row['query_id']} {row['doc_id']}: {label}. {reasons}")
        return {
            "collection": collection.name,
            **{name: stored[name] for name in ("compared", "complete", "counts")},
            "suspects": [dict(zip(NAMES, suspect_values(suspect), strict=True)) for suspect in suspects],
        }
