"""`configure_collection NAME F.toml`: how a collection is judged."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation import guidelines
from corpus.collections.configure import KEYS, configure_collection, read_settings
from corpus.commands import QuorumCommand, collection_named


class Command(QuorumCommand):
    """Set what the file names; everything else stays."""

    act = "settings.changed"
    help = f"Set a collection's {', '.join(KEYS)} from a TOML file."

    def arguments(self, parser: CommandParser) -> None:
        """The collection and the file."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("file", type=Path, metavar="F.toml", help="settings file (TOML)")

    def run(self, **options: Any) -> object:
        """Configure, then say what changed."""
        collection = collection_named(options["name"])
        settings = read_settings(options["file"])
        with guidelines.record_redefinition(collection):
            changed = configure_collection(collection, settings)
        collection.refresh_from_db()
        self.say(f"{collection.name}: " + (f"changed {', '.join(changed)}" if changed else "nothing changed"))
        return {"collection": collection.name, "changed": changed} | {key: getattr(collection, key) for key in KEYS}
