"""`backup F`: write the whole instance to one file."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from config.backup import prune_backups, write_backup
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from store.files import delete, publish


class Command(QuorumCommand):
    """The command that writes a backup while the site and its workers keep running."""

    help = (
        "Write the whole instance (database, exports, models, keys) to one file. Keep it safe: it holds secrets. "
        "Base models in VAR/bases are not in it: copy them."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="F", help="output file; must not exist")
        add_keep(parser, "beside the new backup remove older ones of this instance, until N are left")

    def run(self, **options: Any) -> object:
        path: Path = options["file"]
        keep = check_keep(options["keep"])
        manifest = write_backup(path, settings.VAR, self.stderr.write)
        publish(path.resolve())  # Only if it is below VAR: then every machine can restore it.
        rows, files, size = sum(manifest["rows"].values()), len(manifest["files"]) - 1, path.stat().st_size
        self.say(f"{path}: {rows:,} rows and {files:,} files, {size / 1e6:,.1f} MB")
        removed = [str(removed_path) for removed_path in prune_backups(path.parent, keep)] if keep else []
        for removed_path in removed:
            delete(Path(removed_path).resolve())
            self.say(f"removed the older {removed_path}")
        return {"backup": str(path), "rows": rows, "files": files, "bytes": size, "removed": removed}


def add_keep(parser: CommandParser, help_text: str) -> None:
    """Add the option --keep N; without it no older file is removed."""
    parser.add_argument("--keep", type=int, metavar="N", help=help_text)


def check_keep(keep: int | None) -> int | None:
    """Return the number of backups to keep. Raises BadInput if it is below 1."""
    if keep is not None and keep < 1:
        raise BadInput(f"--keep must be 1 or more, not {keep}")
    return keep
