"""`backup F`: the whole instance in one file."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from config.backup import backup
from corpus.commands import QuorumCommand


class Command(QuorumCommand):
    """Write a backup; the site and its workers go on meanwhile."""

    help = "Write the whole instance (database, exports, models, keys) to one file. Keep it safe: it holds secrets."

    def arguments(self, parser: CommandParser) -> None:
        """The file."""
        parser.add_argument("file", type=Path, metavar="F", help="a new file")

    def run(self, **options: Any) -> object:
        """Write, and say how much it is."""
        path: Path = options["file"]
        manifest = backup(path, settings.VAR, self.stderr.write)
        rows, files, size = sum(manifest["rows"].values()), len(manifest["files"]) - 1, path.stat().st_size
        self.say(f"{path}: {rows:,} rows and {files:,} files, {size / 1e6:,.1f} MB")
        return {"backup": str(path), "rows": rows, "files": files, "bytes": size}
