"""`restore F`: replace the instance by a backup, after a backup of its current state."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from annotation.models import User
from config.backup import BEFORE_RESTORE, prune_backups, write_backup
from config.management.commands.backup import add_keep, check_keep
from config.restoring import missing_bases, restore_backup
from corpus.commands import QuorumCommand
from corpus.models import Collection
from store.files import fetch


class Command(QuorumCommand):
    """The command that restores a backup, after a backup of the current state."""

    help = "Replace the whole instance with a backup. The current state is first saved to VAR/backups."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="F", help="file written by `backup`")
        parser.add_argument("--no-safety-copy", action="store_true", help="do not back up the current state first")
        add_keep(parser, "afterwards remove older copies of what was there before, until N are left")

    def run(self, **options: Any) -> object:
        number = check_keep(options["keep"])
        settings.VAR.mkdir(mode=0o700, parents=True, exist_ok=True)  # Missing on a new machine.
        path = settings.VAR / "backups" / f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.tar"
        keep = (lambda: None) if options["no_safety_copy"] else partial(self.keep, path)
        # If another machine has made the backup, it is only in the store (docs/adr/0094).
        fetch(options["file"].resolve())
        manifest = restore_backup(options["file"], settings.VAR, self.stderr.write, keep)
        rows = sum(manifest["rows"].values())
        self.say(f"restored {rows:,} rows and {len(manifest['files']) - 1:,} files from {options['file']}")
        removed = prune_backups(path.parent, number, BEFORE_RESTORE) if number else []
        for path_name in missing_bases(settings.BASE_MODELS):
            self.say(f"missing: {path_name}: copy this base model there; jobs and models of it need it")
        document = {"restored": str(options["file"]), "rows": rows, "before": str(path) if path.exists() else None}
        return {**document, "removed": [str(path_name) for path_name in removed]}

    def keep(self, path: Path) -> None:
        """Back up the current state, unless the instance has neither collections nor people."""
        if not Collection.objects.exists() and not User.objects.exists():
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_backup(path, settings.VAR)
        self.say(f"what was there before is kept in {path}")
