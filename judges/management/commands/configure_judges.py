"""configure_judges F: take over a judges file and make its panel the default of new campaigns."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from judges.configuration import take_over
from judges.judges_file import read


class Command(QuorumCommand):
    """Stores judges and panel, or nothing when the file has a mistake."""

    act = "judges.configured"
    help = "Take over a judges file (TOML). A changed judge becomes a new version; its panel becomes the default."

    def arguments(self, parser: CommandParser) -> None:
        """The file."""
        parser.add_argument("file", type=Path)

    def run(self, **options: Any) -> object:
        """Read, check, store, say what changed."""
        document = take_over(read(options["file"]))
        for judge in document["judges"]:
            self.say(f"{judge['name']}: {judge['change']}, version {judge['version']}")
        panel = document["panel"]
        self.say(f"Panel {panel['name']}: {panel['change']}; it is the default of new campaigns.")
        self.say("Try every judge with one call: manage.py check_judges")
        return document
