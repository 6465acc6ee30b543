"""`restore F`: the instance as a backup holds it. What was there before is backed up first."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from annotation.models import User
from config.backup import backup, restore
from corpus.commands import QuorumCommand
from corpus.models import Collection


class Command(QuorumCommand):
    """Restore; nothing is lost, because the present state becomes a backup of its own."""

    help = "Replace the whole instance by a backup. What is there now is first written to VAR/backups."

    def arguments(self, parser: CommandParser) -> None:
        """The file."""
        parser.add_argument("file", type=Path, metavar="F", help="a file that `backup` wrote")
        parser.add_argument("--no-safety-copy", action="store_true", help="do not back up what is there now")

    def run(self, **options: Any) -> object:
        """Keep what is there, then replace it."""
        before = None
        if not options["no_safety_copy"] and (Collection.objects.exists() or User.objects.exists()):
            before = self.keep()
        manifest = restore(options["file"], settings.VAR, self.stderr.write)
        rows = sum(manifest["rows"].values())
        self.say(f"restored {rows:,} rows and {len(manifest['files']) - 1:,} files from {options['file']}")
        return {"restored": str(options["file"]), "rows": rows, "before": str(before) if before else None}

    def keep(self) -> Path:
        """What is there now, in VAR/backups."""
        folder: Path = settings.VAR / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.tar"
        backup(path, settings.VAR)
        self.say(f"what was there before is kept in {path}")
        return path
