"""`configure_collection NAME F.toml`: change the settings of a collection."""

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
    """Change the settings that the file names, and leave all others."""

    help = f"Set a collection's {', '.join(KEYS)} from a TOML file."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("file", type=Path, metavar="F.toml", help="settings file (TOML)")

    def run(self, **arguments: Any) -> object:
        collection = collection_named(arguments["name"])
        options = read_options(SettingsOptions, read_text(arguments["file"]), str(arguments["file"]))
        changed = change_settings(self.actor, collection, options)
        collection.refresh_from_db()
        self.say(f"{collection.name}: " + (f"changed {', '.join(changed)}" if changed else "nothing changed"))
        return {"collection": collection.name, "changed": changed} | {key: getattr(collection, key) for key in KEYS}
