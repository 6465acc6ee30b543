"""`configure_collection NAME F.toml`: how a collection is judged."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.work.settings.services import change_settings
from corpus.collections.options import SettingsOptions
from corpus.commands import QuorumCommand, collection_named
from corpus.formats.files import read_text
from corpus.importing.toml_files import read_options

KEYS = [name for name in SettingsOptions.model_fields if name not in ("preset", "guidelines")]


class Command(QuorumCommand):
    """Set what the file names; everything else stays."""

    help = f"Set a collection's {', '.join(KEYS)} from a TOML file."

    def arguments(self, parser: CommandParser) -> None:
        """The collection and the file."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("file", type=Path, metavar="F.toml", help="settings file (TOML)")

    def run(self, **given: Any) -> object:
        """Configure, then say what changed."""
        collection = collection_named(given["name"])
        options = read_options(SettingsOptions, read_text(given["file"]), str(given["file"]))
        changed = change_settings(self.actor, collection, options)
        collection.refresh_from_db()
        self.say(f"{collection.name}: " + (f"changed {', '.join(changed)}" if changed else "nothing changed"))
        return {"collection": collection.name, "changed": changed} | {key: getattr(collection, key) for key in KEYS}
