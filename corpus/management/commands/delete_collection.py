"""`delete_collection NAME --yes`: delete a collection with all its judgments."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.collections.removal import counts_of, delete_collection
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput


class Command(QuorumCommand):
    """Delete a collection; without --yes print what would be deleted."""

    help = "Delete a collection with its documents, queries, pairs, campaigns and judgments."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--yes", action="store_true", help="delete without asking for confirmation; this cannot be undone"
        )

    def run(self, **options: Any) -> object:
        collection = collection_named(options["name"])
        if not options["yes"]:
            raise BadInput(
                f"{collection.name} would be deleted with {format_counts(counts_of(collection))}; say --yes to do it"
            )
        counts = delete_collection(collection)
        self.say(f"{collection.name} is deleted, with {format_counts(counts)}")
        return {"deleted": collection.name, "rows": counts}


def format_counts(counts: dict[str, int]) -> str:
    """Return the counts as `3 documents, 2 queries`."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing in it"
